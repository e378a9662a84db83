// Encodes typed events for one append.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/event_store.hpp>
#include <stela/framework/export.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela {
namespace detail {

[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_not_encodable(std::string_view type,
                                                             std::string_view problem);

/// Events of one stream. Threads: one at a time.
class EventEncoder {
 public:
  EventEncoder(const Conventions& conventions, const StreamId& stream) noexcept
      : conventions_{conventions}, stream_{stream} {}

  /// Announces how many events will follow.
  void reserve(std::size_t events) {
    events_.reserve(events);
    bytes_.reserve(events * 256);
  }

  /// UsageError if a value in the event can't be written.
  template <class E>
  void add(const E& event);

  /// Valid until the next `add`.
  std::span<const NewEvent> events() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const auto& [begin, size] = payloads_[i];
      events_[i].payload = std::string_view{bytes_}.substr(begin, size);
    }
    return events_;
  }

 private:
  struct Payload {
    std::size_t begin;
    std::size_t size;
  };

  const Conventions& conventions_;
  const StreamId& stream_;
  std::string bytes_;
  std::vector<NewEvent> events_;
  std::vector<Payload> payloads_;
};

template <class E>
void EventEncoder::add(const E& event) {
  const std::size_t begin = bytes_.size();
  try {
    codec::encode(conventions_.codec, event, bytes_);
  } catch (const codec::EncodeError& e) {
    throw_not_encodable(E::event_type.name, e.what());
  }
  const bool publishes =
      conventions_.publishes ? conventions_.publishes(E::event_type, stream_) : ShouldPublish<E>;
  // Last, so that the bytes of a refused event belong to no event.
  payloads_.resize(events_.size());
  payloads_.push_back({begin, bytes_.size() - begin});
  events_.push_back({E::event_type.name, E::event_type.version, publishes, {}});
}

template <class Change>
void encode_changes(EventEncoder& encoder, std::span<const Change> changes) {
  encoder.reserve(changes.size());
  for (const Change& change : changes) {
    std::visit([&](const auto& event) { encoder.add(event); }, change);
  }
}

}  // namespace detail
}  // namespace stela

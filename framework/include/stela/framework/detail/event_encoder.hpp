// Encodes typed events for one append.
#pragma once

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/event_store.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/tags.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela {
namespace detail {

[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_not_encodable(std::string_view type,
                                                             std::string_view problem);
[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_foreign_tag(std::string_view type,
                                                           const StreamId& stream, const Tag& tag);
[[noreturn]] STELA_FRAMEWORK_EXPORT void throw_loses(const EventType& type, int recorded);

/// Events of one stream. Threads: one at a time.
class STELA_FRAMEWORK_EXPORT EventEncoder {
 public:
  EventEncoder(const Conventions& conventions, const StreamId& stream) noexcept
      : conventions_{conventions}, stream_{stream} {}

  /// Announces how many events will follow.
  void reserve(std::size_t events);

  /// UsageError if a value in the event can't be written, or if the event is still recorded as its
  /// previous version, and that version can't hold all of it.
  template <class E>
  void add(const E& event);

  /// The events belong to an aggregate: a tag of its category must name that aggregate.
  void guard_tags() noexcept { is_guarded_ = true; }

  /// Valid until the next `add`.
  std::span<const NewEvent> events();

 private:
  struct Part {
    std::size_t begin;
    std::size_t size;
    std::size_t first_tag;
    std::size_t tags;
    std::size_t first_key = 0;
    std::size_t keys = 0;
  };

  template <class E>
  void write(const E& event);
  template <class E>
  void check_nothing_is_lost(const E& event) const;
  template <class E>
  void encode(const E& event, std::string& to, codec::Sealing& sealing) const;
  void add_tag(std::string_view type, Tag tag);
  void note_part(Part part, const codec::Sealing& sealing);

  const Conventions& conventions_;
  const StreamId& stream_;
  std::string bytes_;
  std::vector<NewEvent> events_;
  std::vector<Part> parts_;
  std::vector<Tag> tags_;
  std::vector<KeyId> keys_;
  bool is_guarded_ = false;
};

template <class E>
void EventEncoder::add(const E& event) {
  if constexpr (RecordedAsBefore<E>) {
    static_assert(check_event<E>());
    check_nothing_is_lost(event);
    add(E::record_as(event));
  } else {
    write(event);
  }
}

/// The older version, read back, must equal the event.
template <class E>
void EventEncoder::check_nothing_is_lost(const E& event) const {
  std::string written;
  std::string read_back;
  codec::Sealing clear{.show = codec::Sealing::Show::clear};
  encode(event, written, clear);
  encode(E::upcast(E::record_as(event)), read_back, clear);
  if (written != read_back) throw_loses(E::event_type, E::Supersedes::event_type.version);
}

template <class E>
void EventEncoder::encode(const E& event, std::string& to, codec::Sealing& sealing) const {
  try {
    codec::encode(conventions_.codec, event, to, &sealing);
  } catch (const codec::EncodeError& e) {
    throw_not_encodable(E::event_type.name, e.what());
  }
}

template <class E>
void EventEncoder::write(const E& event) {
  const std::size_t begin = bytes_.size();
  EventId id;
  codec::Sealing sealing{
      .show = codec::Sealing::Show::sealed, .keys = conventions_.keys, .stream = &stream_};
  if constexpr (HasSubject<E>) {
    id = make_uuid();
    sealing.place = codec::Place::of_event(id);
  }
  encode(event, bytes_, sealing);
  const bool publishes =
      conventions_.publishes ? conventions_.publishes(E::event_type, stream_) : ShouldPublish<E>;
  const std::size_t size = bytes_.size() - begin;
  // Last, so that the bytes of a refused event belong to no event.
  const std::size_t first_tag = tags_.size();
  if constexpr (Tagged<E>) {
    for_each_tag(event, [&](Tag tag) { add_tag(E::event_type.name, std::move(tag)); });
  }
  note_part({begin, size, first_tag, tags_.size() - first_tag}, sealing);
  constexpr auto& declared = declared_tags<E>;
  events_.push_back({.type = E::event_type.name,
                     .schema_version = E::event_type.version,
                     .publishes = publishes,
                     .declared = std::span{declared.all}.first(declared.size),
                     .id = id,
                     .newest_key = sealing.newest});
}

template <class Change>
void encode_changes(EventEncoder& encoder, std::span<const Change> changes) {
  encoder.guard_tags();
  encoder.reserve(changes.size());
  for (const Change& change : changes) {
    std::visit([&](const auto& event) { encoder.add(event); }, change);
  }
}

}  // namespace detail
}  // namespace stela

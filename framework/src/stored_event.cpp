#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/stored_event.hpp>

#include <atomic>

namespace stela {

Context StoredEvent::context() const {
  Context all;
  try {
    all = metadata::decode(metadata);
  } catch (const codec::DecodeError& e) {
    detail::throw_corrupt(*this, "metadata: " + std::string{e.what()});
  }
  all.correlation_id = correlation_id();
  all.causation_id = causation_id;
  return all;
}

std::string StoredEvent::describe() const {
  return "event " + std::to_string(sequence.value()) + " (" + kind.type + " v" +
         std::to_string(kind.schema_version) + ", version " + std::to_string(version.value()) +
         " of '" + stream.name() + "')";
}

namespace detail {

std::uint64_t next_kind_identity() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void throw_corrupt(const StoredEvent& event, std::string_view problem) {
  throw CorruptEvent{event.describe() + " is corrupt: " + std::string{problem}};
}

void throw_unknown(const StoredEvent& event) {
  throw UnknownEvent{event.describe() +
                     " isn't in the event set that reads it; add its struct (or its version) to "
                     "the set, or its name to `former_names`"};
}

}  // namespace detail
}  // namespace stela

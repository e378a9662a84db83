#include <stela/framework/aggregate_root.hpp>
#include <stela/framework/detail/event_encoder.hpp>
#include <stela/framework/repository.hpp>

#include <array>
#include <atomic>

namespace stela::detail {

std::uint64_t next_in_order() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void refuse_recording(const StreamId& stream, Closed closed) {
  std::string why = "inside a replay; a handler that is replayed only projects";
  if (closed == Closed::historical) {
    why = "though it was loaded as of an earlier moment; load it without one";
  } else if (closed == Closed::committing) {
    why =
        "while its unit of work is being committed; record it before, or load it again afterwards";
  } else if (closed == Closed::committed) {
    why = "after its unit of work was committed, so it would not be saved; load it again";
  }
  throw UsageError{"'" + stream.name() + "' records an event " + why};
}

void log_lost_changes(const Conventions& conventions, const StreamId& stream) noexcept try {
  const std::array fields{LogEntry::Field{"stream", stream.name()}};
  conventions.log->write({.level = LogLevel::error,
                          .name = "unit.changes_lost",
                          .message = "an event was recorded while its unit of work was being "
                                     "committed, and isn't stored",
                          .fields = fields});
} catch (...) {
  // There is no memory to log it.
}

void throw_not_encodable(std::string_view type, std::string_view problem) {
  throw UsageError{std::string{type} + " can't be stored: " + std::string{problem}};
}

void throw_loses(const EventType& type, int recorded) {
  const std::string before = 'v' + std::to_string(recorded);
  throw UsageError{std::string{type.name} + " v" + std::to_string(type.version) +
                   " can't be stored: it is still recorded as " + before +
                   " (`record_as`), and that would lose something: `upcast` makes another event of "
                   "it; first remove `record_as`, when no program that knows only " +
                   before + " runs any more"};
}

void throw_foreign_tag(std::string_view type, const StreamId& stream, const Tag& tag) {
  throw UsageError{std::string{type} + ": recorded by '" + stream.name() + "' with the tag '" +
                   tag.name() + "', which is of the same category and another one"};
}

void throw_not_found(const StreamId& stream) {
  throw AggregateNotFound{"'" + stream.name() + "' has no events"};
}

void refuse_saving(const StreamId& stream, std::string_view problem) {
  throw UsageError{"'" + stream.name() + "' " + std::string{problem}};
}

bool are_stored(EventLog& log, const StreamAppend& append, StreamVersion before,
                StreamVersion after) {
  const auto count = static_cast<std::int64_t>(append.events.size());
  if (after.value() != before.value() + count) return false;
  auto expected = append.events.begin();
  for (const StoredEvent& event :
       log.read_stream(append.stream, {.from = before.next(), .to = after})) {
    if (event.type() != expected->type || event.schema_version() != expected->schema_version ||
        event.payload != expected->payload) {
      return false;
    }
    ++expected;
  }
  return expected == append.events.end();
}

void discard_snapshot(EventLog& log, const StreamId& stream, StreamVersion version,
                      std::string_view problem) noexcept try {
  const std::array fields{LogEntry::Field{"stream", stream.name()},
                          LogEntry::Field{"version", std::to_string(version.value())},
                          LogEntry::Field{"problem", std::string{problem}}};
  log.conventions().log->write({.level = LogLevel::warning,
                                .name = "snapshot.discarded",
                                .message = "a snapshot can't be used; loading from the events",
                                .fields = fields});
  log.drop_snapshot(stream);
} catch (const std::exception& e) {
  log_snapshot_failure(log.conventions(), stream, e.what());
}

void log_snapshot_failure(const Conventions& conventions, const StreamId& stream,
                          std::string_view problem) noexcept try {
  const std::array fields{LogEntry::Field{"stream", stream.name()},
                          LogEntry::Field{"problem", std::string{problem}}};
  conventions.log->write({.level = LogLevel::warning,
                          .name = "snapshot.failed",
                          .message = "a snapshot couldn't be written; the events are stored",
                          .fields = fields});
} catch (...) {
  // There is no memory to log it, and nothing depends on it.
}

}  // namespace stela::detail

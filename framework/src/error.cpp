#include <stela/framework/error.hpp>

namespace stela {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::concurrency_conflict:
      return "concurrency_conflict";
    case ErrorCode::condition_conflict:
      return "condition_conflict";
    case ErrorCode::tags_missing:
      return "tags_missing";
    case ErrorCode::aggregate_not_found:
      return "aggregate_not_found";
    case ErrorCode::corrupt_event:
      return "corrupt_event";
    case ErrorCode::unknown_event:
      return "unknown_event";
    case ErrorCode::store_busy:
      return "store_busy";
    case ErrorCode::store_full:
      return "store_full";
    case ErrorCode::store_failed:
      return "store_failed";
    case ErrorCode::schema_mismatch:
      return "schema_mismatch";
    case ErrorCode::commit_in_doubt:
      return "commit_in_doubt";
    case ErrorCode::participant_missing:
      return "participant_missing";
    case ErrorCode::store_suspended:
      return "store_suspended";
    case ErrorCode::uniqueness_violated:
      return "uniqueness_violated";
    case ErrorCode::constraint_violated:
      return "constraint_violated";
    case ErrorCode::broker_failed:
      return "broker_failed";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::subject_forgotten:
      return "subject_forgotten";
    case ErrorCode::key_missing:
      return "key_missing";
    case ErrorCode::keys_behind:
      return "keys_behind";
    case ErrorCode::usage:
      return "usage";
  }
  return "unknown";
}

ConcurrencyConflict::ConcurrencyConflict(std::string_view stream, std::string_view expected,
                                         StreamVersion actual)
    : Error{ErrorCode::concurrency_conflict, "stream '" + std::string{stream} + "': expected " +
                                                 std::string{expected} + ", but it is at version " +
                                                 std::to_string(actual.value()) +
                                                 "; load it again and redo the change"},
      stream_{stream},
      expected_{expected},
      actual_{actual} {}

ConditionConflict::ConditionConflict(GlobalSequence position, std::size_t item)
    : ConditionConflict{"event " + std::to_string(position.value()) + " matches item " +
                            std::to_string(item) +
                            " of the condition's query; read again and decide again",
                        Cause::event, position, item} {}

ConditionConflict ConditionConflict::of_tag_epoch(GlobalSequence head) {
  return {
      "events of history got other tags since the condition's query was answered; read again "
      "and decide again",
      Cause::tags, head, 0};
}

ConditionConflict ConditionConflict::of_missing_position(GlobalSequence after,
                                                         GlobalSequence head) {
  return {"the condition was read at position " + std::to_string(after.value()) +
              ", and the store ends at " + std::to_string(head.value()) +
              ": what was there was rolled back, or the database is an older copy; read again and "
              "decide again",
          Cause::missing_position, head, 0};
}

ConditionConflict ConditionConflict::of_rollback(GlobalSequence head) {
  return {
      "the condition was read in a transaction that was rolled back, or isn't known to be "
      "committed; read again and decide again",
      Cause::rolled_back, head, 0};
}

ExpectedVersion ExpectedVersion::exactly(StreamVersion version) {
  if (version.value() < 0) {
    throw UsageError{"expected version " + std::to_string(version.value()) +
                     ": a version isn't negative; 0 is a stream without events"};
  }
  return ExpectedVersion{version.value()};
}

std::string ExpectedVersion::describe() const {
  if (is_any()) return "any version";
  if (value_ == 0) return "no stream";
  return "version " + std::to_string(value_);
}

}  // namespace stela

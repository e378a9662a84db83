// Stela's exceptions: one base class, and a derived class wherever callers act differently.
#pragma once

#include <stela/framework/export.hpp>
#include <stela/framework/numbers.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela {

enum class ErrorCode : std::uint8_t {
  concurrency_conflict,
  condition_conflict,
  tags_missing,
  aggregate_not_found,
  corrupt_event,
  unknown_event,
  store_busy,
  store_full,
  store_failed,
  schema_mismatch,
  commit_in_doubt,
  participant_missing,
  store_suspended,
  uniqueness_violated,
  constraint_violated,
  broker_failed,
  cancelled,
  subject_forgotten,
  key_missing,
  keys_behind,
  usage,
};

/// The name of a code in logs and JSON: "concurrency_conflict".
STELA_FRAMEWORK_EXPORT std::string_view to_string(ErrorCode code) noexcept;

/// The base of all exceptions of Stela. `what()` names the stream, version or file concerned, and
/// says what to do where something can be done.
class STELA_FRAMEWORK_EXPORT Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& what) : std::runtime_error{what}, code_{code} {}

  ErrorCode code() const noexcept { return code_; }

  /// True if the same work, started again with a fresh load, may succeed. Nothing was written.
  bool is_retryable() const noexcept {
    return code_ == ErrorCode::concurrency_conflict || code_ == ErrorCode::condition_conflict ||
           code_ == ErrorCode::store_busy;
  }

 private:
  ErrorCode code_;
};

/// Another writer appended first: the stream isn't at the expected version.
class STELA_FRAMEWORK_EXPORT ConcurrencyConflict : public Error {
 public:
  ConcurrencyConflict(std::string_view stream, std::string_view expected, StreamVersion actual);

  const std::string& stream() const noexcept { return stream_; }
  /// The expected version in words: "version 3", "no stream".
  const std::string& expected() const noexcept { return expected_; }
  StreamVersion actual() const noexcept { return actual_; }

 private:
  std::string stream_;
  std::string expected_;
  StreamVersion actual_;
};

/// The basis of a decision has changed: an event after its position matches the condition of the
/// append, or the events read at the position aren't in the store any more.
class STELA_FRAMEWORK_EXPORT ConditionConflict : public Error {
 public:
  enum class Cause : std::uint8_t {
    /// An event matches the query.
    event,
    /// Tags of past events have changed since the query was answered.
    tags,
    /// The store ends before the condition's position.
    missing_position,
    /// The events read at the position were rolled back, or their commit is in doubt.
    rolled_back,
  };

  /// `item` counts the query's items from 0.
  ConditionConflict(GlobalSequence position, std::size_t item);
  static ConditionConflict of_tag_epoch(GlobalSequence head);
  static ConditionConflict of_missing_position(GlobalSequence after, GlobalSequence head);
  static ConditionConflict of_rollback(GlobalSequence head);

  Cause cause() const noexcept { return cause_; }
  /// The first event that matches. For the other causes, the last event of the store.
  GlobalSequence position() const noexcept { return position_; }
  /// The first item of the query that it matches.
  std::size_t item() const noexcept { return item_; }

 private:
  ConditionConflict(const std::string& what, Cause cause, GlobalSequence position, std::size_t item)
      : Error{ErrorCode::condition_conflict, what},
        cause_{cause},
        position_{position},
        item_{item} {}

  Cause cause_;
  GlobalSequence position_;
  std::size_t item_;
};

/// Events in history lack tags that a view needs: they were appended before their type declared
/// them. Tag them first: see `stela::add_tags`.
class STELA_FRAMEWORK_EXPORT TagsMissing : public Error {
 public:
  explicit TagsMissing(const std::string& what) : Error{ErrorCode::tags_missing, what} {}
};

/// `load` found a stream without events.
class STELA_FRAMEWORK_EXPORT AggregateNotFound : public Error {
 public:
  explicit AggregateNotFound(const std::string& what)
      : Error{ErrorCode::aggregate_not_found, what} {}
};

/// Stored bytes don't decode, or don't match their checksum.
class STELA_FRAMEWORK_EXPORT CorruptEvent : public Error {
 public:
  explicit CorruptEvent(const std::string& what) : Error{ErrorCode::corrupt_event, what} {}
};

/// The event set that reads a stored event doesn't know its name or version.
class STELA_FRAMEWORK_EXPORT UnknownEvent : public Error {
 public:
  explicit UnknownEvent(const std::string& what) : Error{ErrorCode::unknown_event, what} {}
};

/// Another writer held the store's lock for longer than the busy timeout. Nothing was written.
class STELA_FRAMEWORK_EXPORT StoreBusy : public Error {
 public:
  explicit StoreBusy(const std::string& what) : Error{ErrorCode::store_busy, what} {}
};

/// The disk is full. Nothing was written. The store continues once there is space.
class STELA_FRAMEWORK_EXPORT StoreFull : public Error {
 public:
  explicit StoreFull(const std::string& what) : Error{ErrorCode::store_full, what} {}
};

/// The store can't be opened, read or written: a missing folder, an I/O error, a damaged file.
class STELA_FRAMEWORK_EXPORT StoreFailed : public Error {
 public:
  explicit StoreFailed(const std::string& what) : Error{ErrorCode::store_failed, what} {}
};

/// The file belongs to a newer version of Stela or to another application, or was changed by hand;
/// or a newer version migrated it while it was open. Nothing was written.
class STELA_FRAMEWORK_EXPORT SchemaMismatch : public Error {
 public:
  explicit SchemaMismatch(const std::string& what) : Error{ErrorCode::schema_mismatch, what} {}
};

/// The commit failed, and it is unknown whether it was written: the sync failed, for example. Never
/// retry it blindly. This store object writes no more. Reopen the store and append again with the
/// same `append_id`: that finds the earlier append, or writes it. Without an append id, look for
/// the events; what you see is final once another event was appended after it.
class STELA_FRAMEWORK_EXPORT CommitInDoubt : public Error {
 public:
  explicit CommitInDoubt(const std::string& what) : Error{ErrorCode::commit_in_doubt, what} {}
};

/// The database requires a participant (the outbox, an inline projector) that isn't attached in
/// this process. Appends without it would make the participant's tables wrong.
class STELA_FRAMEWORK_EXPORT ParticipantMissing : public Error {
 public:
  explicit ParticipantMissing(const std::string& what)
      : Error{ErrorCode::participant_missing, what} {}
};

/// Appends to this store are suspended until an operator resumes it: a tenant's, for example. Reads
/// work. Nothing was written.
class STELA_FRAMEWORK_EXPORT StoreSuspended : public Error {
 public:
  explicit StoreSuspended(const std::string& what) : Error{ErrorCode::store_suspended, what} {}
};

/// A constraint of a projector's table. Unknown members are empty.
struct Constraint {
  std::string projector = {};
  /// The plain name of the table.
  std::string table = {};
  std::vector<std::string> columns = {};
  /// For a CHECK its name, or its expression if it has none. For a UNIQUE index on an expression
  /// the index's plain name. For a trigger the text of its RAISE.
  std::string name = {};
};

/// A constraint of an inline projector's table (CHECK, NOT NULL, a column's type, a trigger's
/// RAISE) refused a row, and so the append failed. Not retryable: the events contradict the table.
class STELA_FRAMEWORK_EXPORT ConstraintViolated : public Error {
 public:
  explicit ConstraintViolated(const std::string& what, Constraint constraint = {})
      : ConstraintViolated{ErrorCode::constraint_violated, what, std::move(constraint)} {}

  const Constraint& constraint() const noexcept { return constraint_; }

 protected:
  ConstraintViolated(ErrorCode code, const std::string& what, Constraint constraint)
      : Error{code, what}, constraint_{std::move(constraint)} {}

 private:
  Constraint constraint_;
};

/// A UNIQUE constraint of an inline projector's table refused the append, for example a second
/// account with the same e-mail address. Not retryable: the value is taken.
class STELA_FRAMEWORK_EXPORT UniquenessViolated : public ConstraintViolated {
 public:
  explicit UniquenessViolated(const std::string& what, Constraint constraint = {})
      : ConstraintViolated{ErrorCode::uniqueness_violated, what, std::move(constraint)} {}
};

/// The message broker can't be reached, or refused a request.
class STELA_FRAMEWORK_EXPORT BrokerFailed : public Error {
 public:
  explicit BrokerFailed(const std::string& what) : Error{ErrorCode::broker_failed, what} {}
};

/// The work was withdrawn before it began: nothing was written.
class STELA_FRAMEWORK_EXPORT Cancelled : public Error {
 public:
  explicit Cancelled(const std::string& what) : Error{ErrorCode::cancelled, what} {}
};

/// A personal field can't be sealed: its subject was forgotten. Nothing was written.
/// `stela::allow_again` lets a person who returns in.
class STELA_FRAMEWORK_EXPORT SubjectForgotten : public Error {
 public:
  explicit SubjectForgotten(const std::string& what) : Error{ErrorCode::subject_forgotten, what} {}
};

/// A personal field was sealed with a key that the key store neither has nor destroyed: the key
/// store is too old, or belongs to another store.
class STELA_FRAMEWORK_EXPORT KeyMissing : public Error {
 public:
  explicit KeyMissing(const std::string& what) : Error{ErrorCode::key_missing, what} {}
};

/// The key store lacks keys that the event store was written with: it was restored from a backup
/// that is too old, or belongs to another store.
class STELA_FRAMEWORK_EXPORT KeysBehind : public Error {
 public:
  explicit KeysBehind(const std::string& what) : Error{ErrorCode::keys_behind, what} {}
};

/// The call is wrong: an invalid name, a contradiction, an option out of range.
class STELA_FRAMEWORK_EXPORT UsageError : public Error {
 public:
  explicit UsageError(const std::string& what) : Error{ErrorCode::usage, what} {}
};

}  // namespace stela

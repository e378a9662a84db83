// The open transaction of a store, as the modules beside the event store see it.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/rows.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <exception>
#include <span>
#include <string_view>

namespace stela::database {

/// The work committed the transaction that it was called in: what it did before that stands, and is
/// done twice if the work is carried out again.
class STELA_EVENTSTORE_EXPORT CommittedByCaller final : public UsageError {
 public:
  using UsageError::UsageError;
};

/// What work fails with that ended the transaction on the connection that it was lent:
/// CommittedByCaller if what it did may be committed, else UsageError.
STELA_EVENTSTORE_EXPORT std::exception_ptr ended_by_caller(bool may_stand);

/// SQL of the user's added events by itself, which only a store may: all of the transaction is
/// rolled back.
class STELA_EVENTSTORE_EXPORT ForeignEvents final : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Threads: the one whose transaction it is.
class STELA_EVENTSTORE_EXPORT OpenTransaction {
 public:
  virtual ~OpenTransaction() = default;

  virtual Connection& connection() noexcept = 0;
  /// For work that decides by what it reads: nobody else writes from now on, until the transaction
  /// ends. On SQLite that is so anyway.
  virtual void lock() = 0;
  /// While what a handler threw is being handled: a FailureWatch sees what the database failed with
  /// on the connection that the handler was lent.
  virtual void note_failure() noexcept = 0;
  /// For the end of a handler's work: UsageError if it ended the transaction, CommittedByCaller if
  /// it committed it.
  virtual void check_open() = 0;
  /// For the end of a handler's work: UsageError if it went on after a failure that lets the
  /// transaction write nothing any more.
  virtual void check_usable() const {}
  /// Runs one statement of the user's, as `Sql` promises. Its parameters are written ?1, ?2 …,
  /// whatever the engine writes. How many rows it changed; fills `rows` unless it is null.
  virtual std::int64_t run_sql(std::string_view sql, std::span<const SqlValue> values,
                               Rows* rows) = 0;
};

/// UsageError if `transaction` isn't one of a store of Stela's.
STELA_EVENTSTORE_EXPORT OpenTransaction& open_transaction(Transaction& transaction);

}  // namespace stela::database

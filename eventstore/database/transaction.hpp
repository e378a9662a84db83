// The open transaction of a store, as other modules use it.
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

/// The work committed the transaction that it was called in: its earlier changes are permanent, and
/// happen twice if the work is repeated.
class STELA_EVENTSTORE_EXPORT CommittedByCaller final : public UsageError {
 public:
  using UsageError::UsageError;
};

/// The error of work that ended the transaction on its lent connection: CommittedByCaller if its
/// changes may be committed, otherwise UsageError.
STELA_EVENTSTORE_EXPORT std::exception_ptr ended_by_caller(bool may_stand);

/// The user's SQL added events by itself, which only a store may do: the entire transaction is
/// rolled back.
class STELA_EVENTSTORE_EXPORT ForeignEvents final : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Threads: the transaction's own thread.
class STELA_EVENTSTORE_EXPORT OpenTransaction {
 public:
  virtual ~OpenTransaction() = default;

  virtual Connection& connection() noexcept = 0;
  /// For work that decides by what it reads: blocks all other writers until the transaction ends.
  /// On SQLite they are blocked anyway.
  virtual void lock() = 0;
  /// Called while a handler's exception is being handled: reports the database's failure on the
  /// lent connection to a FailureWatch.
  virtual void note_failure() noexcept = 0;
  /// Called after a handler's work: UsageError if it ended the transaction, CommittedByCaller if it
  /// committed it.
  virtual void check_open() = 0;
  /// Called after a handler's work: UsageError if it continued after a failure that prevents all
  /// further writes of the transaction.
  virtual void check_usable() const {}
  /// Runs one statement of the user's, as `Sql` promises. Its parameters are written ?1, ?2 … on
  /// every engine. Returns how many rows it changed, and fills `rows` unless it is null.
  virtual std::int64_t run_sql(std::string_view sql, std::span<const SqlValue> values,
                               Rows* rows) = 0;
};

/// UsageError if `transaction` isn't one of Stela's stores.
STELA_EVENTSTORE_EXPORT OpenTransaction& open_transaction(Transaction& transaction);

}  // namespace stela::database

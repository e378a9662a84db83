// The user's SQL, on the user's tables, in the transaction of the events.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/rows.hpp>
#include <stela/framework/event_store.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace stela {

namespace database {
class OpenTransaction;
}

/// SQL queries. Parameters are written ?1, ?2 … and bound in that order.
class STELA_EVENTSTORE_EXPORT SqlQueries {
 public:
  virtual ~SqlQueries() = default;

  /// The rows of the result.
  template <class... Args>
  Rows query(std::string_view sql, const Args&... args) {
    Rows rows;
    run(sql, std::array<SqlValue, sizeof...(args)>{detail::to_sql(args)...}, &rows);
    return rows;
  }

  /// The first column of the first row. Empty if there is no row, or if the value is NULL.
  template <class T, class... Args>
  std::optional<T> value(std::string_view sql, const Args&... args) {
    return query(sql, args...).template value<T>();
  }

 protected:
  /// Returns how many rows the statement changed. Fills `rows` unless it is null.
  virtual std::int64_t run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) = 0;
};

/// SQL queries, and statements that change rows.
class STELA_EVENTSTORE_EXPORT SqlStatements : public SqlQueries {
 public:
  /// Runs one statement. Returns how many rows it changed.
  template <class... Args>
  std::int64_t execute(std::string_view sql, const Args&... args) {
    return run(sql, std::array<SqlValue, sizeof...(args)>{detail::to_sql(args)...}, nullptr);
  }
};

/// SQL inside an open transaction of a store. Its changes commit or roll back with the events.
///
///     store.transact([&](stela::Transaction& transaction) {
///       stela::Sql sql{transaction};
///       sql.execute("UPDATE limits SET used = used + ?1 WHERE account = ?2", cents, account);
///     });
///
/// A statement may read every table. It may write, create, alter and drop the user's tables, their
/// indexes and triggers. UsageError for a statement that
/// - is wrong, or is more than one, or doesn't use one of its parameters ?1, ?2 …;
/// - writes to a table of Stela or of a read model, or uses a name reserved for them;
/// - begins, ends or nests a transaction (call `transact` on the transaction instead), or is a
///   PRAGMA;
/// - creates or drops a view or a temporary object, or renames a table;
/// - declares a constraint INITIALLY DEFERRED.
/// UniquenessViolated if a UNIQUE constraint refuses a row, ConstraintViolated for another
/// constraint. StoreBusy, StoreFull and StoreFailed as for an append. A statement that fails
/// changes nothing, and the transaction continues. Only OR ROLLBACK and RAISE(ROLLBACK) end the
/// transaction: all of its work is then rolled back and fails with UsageError.
///
/// On PostgreSQL:
/// - The first statement takes the lock that orders appends: nobody else appends until the
///   transaction ends. A statement that waits longer than 100 ms for another program's lock fails
///   with StoreBusy.
/// - Names without a schema are the user's: those in `postgres::Options::sql_schema` first, where
///   tables are created, then those that the search_path of the connection string or the role
///   finds. Stela's come after them. What is created, altered and dropped is the user's.
/// - Views may be created too, and tables renamed. TRUNCATE, LOCK and MERGE work.
/// - Integers are sent as bigint, and texts and UUIDs with the type that the server infers. Numbers
///   are returned as integers or real numbers, booleans as 0 and 1, bytea as bytes, and any other
///   type as text.
///
/// Threads: only the transaction's thread.
class STELA_EVENTSTORE_EXPORT Sql final : public SqlStatements {
 public:
  /// Valid as long as the transaction. UsageError if `transaction` isn't one of a `Store`.
  explicit Sql(Transaction& transaction);

 protected:
  std::int64_t run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) override;

 private:
  database::OpenTransaction& transaction_;
};

}  // namespace stela

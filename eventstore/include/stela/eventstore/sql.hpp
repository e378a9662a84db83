// SQL of the user's, on tables of the user's, in the transaction of the events.
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

/// Questions in SQL. Parameters are written ?1, ?2 … and bound in that order.
class STELA_EVENTSTORE_EXPORT SqlQueries {
 public:
  virtual ~SqlQueries() = default;

  /// The rows that a statement gives.
  template <class... Args>
  Rows query(std::string_view sql, const Args&... args) {
    Rows rows;
    run(sql, std::array<SqlValue, sizeof...(args)>{detail::to_sql(args)...}, &rows);
    return rows;
  }

  /// The first column of the first row; nothing if there is no row, or it is NULL.
  template <class T, class... Args>
  std::optional<T> value(std::string_view sql, const Args&... args) {
    return query(sql, args...).template value<T>();
  }

 protected:
  /// How many rows the statement changed. Fills `rows` unless it is null.
  virtual std::int64_t run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) = 0;
};

/// The same, and statements that change rows.
class STELA_EVENTSTORE_EXPORT SqlStatements : public SqlQueries {
 public:
  /// Runs one statement. How many rows it changed.
  template <class... Args>
  std::int64_t execute(std::string_view sql, const Args&... args) {
    return run(sql, std::array<SqlValue, sizeof...(args)>{detail::to_sql(args)...}, nullptr);
  }
};

/// SQL inside an open transaction of a store: what it changes is committed or rolled back with the
/// events.
///
///     store.transact([&](stela::Transaction& transaction) {
///       stela::Sql sql{transaction};
///       sql.execute("UPDATE limits SET used = used + ?1 WHERE account = ?2", cents, account);
///     });
///
/// A statement may read every table, and write, make, alter and drop tables of the user's, their
/// indexes and triggers. UsageError for a statement that
/// - is wrong, or more than one, or leaves out one of its parameters ?1, ?2 …;
/// - writes to a table of Stela's or of a read model, or takes such a name;
/// - begins, ends or nests a transaction (`transact` on the transaction does), or is a PRAGMA;
/// - makes or drops a view or something temporary, or renames a table.
/// UniquenessViolated if a UNIQUE constraint refuses a row, ConstraintViolated if another does;
/// StoreBusy, StoreFull, StoreFailed as for an append. A statement that fails changes nothing, and
/// the transaction continues; only OR ROLLBACK and RAISE(ROLLBACK) end it, and then all of its work
/// is rolled back and fails with UsageError.
///
/// Threads: the one whose transaction it is.
class STELA_EVENTSTORE_EXPORT Sql final : public SqlStatements {
 public:
  /// Valid as long as the transaction. UsageError if it isn't one of a `Store`.
  explicit Sql(Transaction& transaction);

 protected:
  std::int64_t run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) override;

 private:
  database::OpenTransaction& transaction_;
};

}  // namespace stela

// The tables of a projector, as it writes them.
#pragma once

#include <stela/projections/export.hpp>
#include <stela/projections/rows.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela {

/// SQL on the tables of one projector, inside the transaction that moves its checkpoint. A table,
/// index or trigger of its own is written {name}, so that another build of it can stand beside;
/// whoever reads the model from outside finds each table as a view of the plain name.
///
/// Every statement may read anything and write only tables of its own; it can't begin or end a
/// transaction. UniquenessViolated if a UNIQUE constraint refuses a row, ConstraintViolated if
/// another does, UsageError for wrong SQL.
/// Threads: the one that projects.
class STELA_PROJECTIONS_EXPORT ReadModel {
 public:
  virtual ~ReadModel() = default;

  /// Runs one statement with its parameters bound in order. How many rows it changed.
  template <class... Args>
  std::int64_t execute(std::string_view sql, const Args&... args) {
    return run(sql, std::array<SqlValue, sizeof...(args)>{detail::to_sql(args)...}, nullptr);
  }

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

  /// How {name} is called in the database: for those who keep their model elsewhere, and want a
  /// name that differs from build to build too.
  virtual std::string table(std::string_view name) const = 0;

 protected:
  /// Fills `rows` unless it is null.
  virtual std::int64_t run(std::string_view sql, std::span<const SqlValue> values, Rows* rows) = 0;
};

}  // namespace stela

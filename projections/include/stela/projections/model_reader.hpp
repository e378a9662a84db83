// How an application reads its read models.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/projections/export.hpp>
#include <stela/projections/rows.hpp>

#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace stela {

/// Queries on the views of the plain names: `SELECT … FROM orders` reads the model that is living
/// now. Each query sees one state of the database, and never a half-built model.
/// Threads: any number at once.
class STELA_PROJECTIONS_EXPORT ModelReader {
 public:
  /// `store` must outlive the reader.
  explicit ModelReader(Store& store) noexcept : store_{store.anchor()} {}

  /// UsageError for wrong SQL, for more than one statement, for one that writes and for a PRAGMA.
  template <class... Args>
  Rows query(std::string_view sql, const Args&... args) {
    return run(sql, std::array<SqlValue, sizeof...(args)>{detail::to_sql(args)...});
  }

  /// The first column of the first row; nothing if there is no row, or it is NULL.
  template <class T, class... Args>
  std::optional<T> value(std::string_view sql, const Args&... args) {
    return query(sql, args...).template value<T>();
  }

 private:
  Rows run(std::string_view sql, std::span<const SqlValue> values);

  Store& store_;
};

}  // namespace stela

// The result of a statement.
#pragma once

#include "database/postgres/parameters.hpp"

#include <stela/eventstore/export.hpp>

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace stela::postgres {

/// Rows in binary or, for the user's statements, as text. Rows and columns count from 0.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Result {
 public:
  Result() = default;
  explicit Result(PGresult* result) noexcept : result_{result} {}

  PGresult* get() const noexcept { return result_.get(); }
  ExecStatusType status() const noexcept { return PQresultStatus(get()); }
  bool is_error() const noexcept {
    return status() == PGRES_FATAL_ERROR || status() == PGRES_BAD_RESPONSE ||
           status() == PGRES_PIPELINE_ABORTED;
  }
  int rows() const noexcept { return PQntuples(get()); }
  int columns() const noexcept { return PQnfields(get()); }
  bool is_null(int row, int column) const noexcept { return PQgetisnull(get(), row, column) != 0; }
  std::string_view bytes(int row, int column) const noexcept {
    return {PQgetvalue(get(), row, column),
            static_cast<std::size_t>(PQgetlength(get(), row, column))};
  }
  /// The value of an integer or a boolean, in binary.
  std::int64_t integer(int row, int column) const noexcept {
    return PQftype(get(), column) == type::boolean ? std::int64_t{*PQgetvalue(get(), row, column)}
                                                   : to_integer(bytes(row, column));
  }
  /// "COMMIT", "INSERT 0 1".
  std::string_view command() const noexcept { return PQcmdStatus(get()); }
  /// How many rows were changed or returned.
  std::int64_t changes() const noexcept;

 private:
  struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

}  // namespace stela::postgres

// The rows of PostgreSQL's own statements, which .sql files define.
#pragma once

#include "database/postgres/result.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>
#include <stela/framework/uuid.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::postgres {

/// The rows of a result, one at a time: none before the first step. Values are valid as long as the
/// rows. NULL reads as 0, or as empty.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT NamedRows {
 public:
  explicit NamedRows(Result result) noexcept : result_{std::move(result)} {}

  /// True if there is another row.
  bool step() noexcept { return ++row_ < result_.rows(); }

  std::int64_t integer(int column) const noexcept { return result_.integer(row_, column); }
  bool boolean(int column) const noexcept { return integer(column) != 0; }
  Timestamp time(int column) const noexcept {
    return Timestamp{std::chrono::microseconds{integer(column)}};
  }
  std::string_view text(int column) const noexcept { return result_.bytes(row_, column); }
  std::string_view blob(int column) const noexcept { return result_.bytes(row_, column); }
  Uuid uuid(int column) const noexcept { return to_uuid(result_.bytes(row_, column)); }
  /// The elements of an array.
  std::vector<std::int64_t> integers(int column) const;
  bool is_null(int column) const noexcept { return result_.is_null(row_, column); }

 private:
  Result result_;
  int row_ = -1;
};

/// The place of a named statement's results among those of a pipeline.
template <class Named>
struct Place {
  std::size_t at;

  auto rows(std::vector<Result>& results) const {
    return typename Named::Row{std::move(results[at])};
  }
  /// The first row.
  auto row(std::vector<Result>& results) const {
    auto first = rows(results);
    first.step();
    return first;
  }
};

/// A named statement, and the names and types of the columns that its file declares.
struct Declaration {
  std::string_view sql;
  std::string_view columns;
};

}  // namespace stela::postgres

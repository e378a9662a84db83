#include <stela/eventstore/rows.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <limits>

namespace stela {
namespace detail {
namespace {

constexpr std::string_view kind_of(const SqlCell& cell) noexcept {
  constexpr std::string_view kinds[] = {"NULL", "an integer", "a real number", "text", "bytes"};
  return kinds[cell.index()];
}

}  // namespace

std::int64_t to_sql_integer(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw UsageError{
        std::to_string(value) +
        " doesn't fit a column: integers of a database end at 2^63 - 1; store it as text"};
  }
  return static_cast<std::int64_t>(value);
}

void refuse_cell(std::string_view column, const SqlCell& cell, std::string_view wanted) {
  std::string text = "column '";
  text.append(column).append("' holds ").append(kind_of(cell)).append(", and ");
  text.append(wanted).append(" was asked for");
  if (std::holds_alternative<std::nullptr_t>(cell)) text += "; ask for a std::optional";
  throw UsageError{text};
}

std::int64_t integer_of(std::string_view column, const SqlCell& cell) {
  if (const auto* const value = std::get_if<std::int64_t>(&cell)) return *value;
  refuse_cell(column, cell, "an integer");
}

double real_of(std::string_view column, const SqlCell& cell) {
  if (const auto* const value = std::get_if<double>(&cell)) return *value;
  if (const auto* const value = std::get_if<std::int64_t>(&cell)) {
    return static_cast<double>(*value);
  }
  refuse_cell(column, cell, "a number");
}

const std::string& text_of(std::string_view column, const SqlCell& cell) {
  if (const auto* const value = std::get_if<std::string>(&cell)) return *value;
  refuse_cell(column, cell, "text");
}

const std::vector<std::byte>& bytes_of(std::string_view column, const SqlCell& cell) {
  if (const auto* const value = std::get_if<std::vector<std::byte>>(&cell)) return *value;
  refuse_cell(column, cell, "bytes");
}

Uuid uuid_of(std::string_view column, const SqlCell& cell) {
  if (const auto* const text = std::get_if<std::string>(&cell)) {
    if (const auto uuid = Uuid::parse(*text)) return *uuid;
  }
  refuse_cell(column, cell, "a UUID as text");
}

}  // namespace detail

const SqlCell& Row::cell(std::string_view column) const {
  const auto& columns = rows_->columns();
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found != columns.end()) {
    return rows_->cell(number_, static_cast<std::size_t>(found - columns.begin()));
  }
  std::string text = "there is no column '" + std::string{column} + "'; there are:";
  for (const std::string& name : columns) text += ' ' + name;
  throw UsageError{text};
}

}  // namespace stela

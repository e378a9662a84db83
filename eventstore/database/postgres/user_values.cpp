#include "database/postgres/user_values.hpp"

#include "database/postgres/sql_text.hpp"

#include <stela/framework/error.hpp>

#include <charconv>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace stela::postgres {
namespace {

struct Adder {
  Parameters& parameters;

  void operator()(std::nullptr_t) const { parameters.add_null(); }
  void operator()(std::int64_t number) const { parameters.add(number); }
  void operator()(double number) const { parameters.add_real(number); }
  void operator()(std::string_view text) const { parameters.add_untyped(text); }
  void operator()(const std::string& text) const { parameters.add_untyped(text); }
  void operator()(std::span<const std::byte> bytes) const {
    parameters.add_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
};

template <class T>
bool parse(std::string_view text, T& value) noexcept {
  const char* const end = text.data() + text.size();
  return std::from_chars(text.data(), end, value).ptr == end;
}

/// A number with or without a fraction: the server returns the sum of integers as numeric.
SqlCell number_of(std::string_view text) {
  std::int64_t whole = 0;
  if (parse(text, whole)) return whole;
  double real = 0;
  if (parse(text, real)) return real;
  return std::string{text};
}

unsigned digit_of(char c) noexcept {
  return static_cast<unsigned>(c >= 'a' ? c - 'a' + 10 : c - '0');
}

/// "\\x00ff".
std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 2; at + 1 < text.size(); at += 2) {
    bytes.push_back(static_cast<std::byte>(digit_of(text[at]) << 4 | digit_of(text[at + 1])));
  }
  return bytes;
}

SqlCell cell_of(const Result& result, int row, int column) {
  if (result.is_null(row, column)) return nullptr;
  const std::string_view text = result.bytes(row, column);
  switch (PQftype(result.get(), column)) {
    case type::boolean:
      return std::int64_t{text == "t"};
    case type::int2:
    case type::int4:
    case type::int8:
    case type::oid:
    case type::numeric:
      return number_of(text);
    case type::float4:
    case type::float8: {
      double real = 0;
      parse(text, real);
      return real;
    }
    case type::bytes:
      return bytes_of(text);
    default:
      return std::string{text};
  }
}

}  // namespace

Parameters to_parameters(std::span<const SqlValue> values) {
  Parameters parameters;
  for (const SqlValue& value : values) std::visit(Adder{parameters}, value);
  return parameters;
}

void check_parameters(std::string_view sql, std::size_t values) {
  if (sql.find('\0') != std::string_view::npos) {
    throw UsageError{'"' + std::string{sql} + "\" has a zero byte"};
  }
  const std::set<std::size_t> numbers = parameters_in(sql);
  std::size_t next = 1;
  while (numbers.contains(next)) ++next;
  if (next <= numbers.size() || !parameters_in(sql, '$').empty()) {
    throw UsageError{'"' + std::string{sql} + "\" has no parameter ?" + std::to_string(next) +
                     "; parameters are written ?1, ?2 …, and none is left out"};
  }
  if (numbers.size() == values) return;
  throw UsageError{'"' + std::string{sql} + "\" has " + std::to_string(numbers.size()) +
                   " parameters, and " + std::to_string(values) + " values were given"};
}

Rows rows_of(const Result& result) {
  std::vector<std::string> columns;
  for (int i = 0; i < result.columns(); ++i) columns.emplace_back(PQfname(result.get(), i));
  Rows rows{std::move(columns)};
  for (int row = 0; row < result.rows(); ++row) {
    for (int column = 0; column < result.columns(); ++column) {
      rows.add(cell_of(result, row, column));
    }
  }
  return rows;
}

}  // namespace stela::postgres

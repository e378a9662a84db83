#include <stela/eventstore/forget.hpp>
#include <stela/eventstore/sqlite.hpp>
#include <stela/projections/replayer.hpp>
#include <stela/projections_testing/projector_scenario.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace stela::testing::detail {
namespace {

std::string hex(const std::vector<std::byte>& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "x'";
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text + '\'';
}

struct Render {
  std::string operator()(std::nullptr_t) const { return "NULL"; }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  std::string operator()(double number) const {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
    return {text.data(), end.ptr};
  }
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(const std::vector<std::byte>& bytes) const { return hex(bytes); }
};

std::string render_row(const Rows& rows, const Row& row) {
  std::string text;
  for (const std::string& column : rows.columns()) {
    if (&column != &rows.columns().front()) text += " | ";
    text += std::visit(Render{}, row.cell(column));
  }
  return text;
}

std::string list_rows(const std::vector<std::string>& rows) {
  if (rows.empty()) return "  (none)\n";
  std::string text;
  for (const std::string& row : rows) text += "  " + row + '\n';
  return text;
}

}  // namespace

Bench::Bench()
    : store{sqlite::open_in_memory({.clock = &clock, .keys = &keys})},
      projections{store},
      reader{store} {}

void Bench::expect_rows(std::string_view sql, const std::vector<std::string>& rows) {
  const Rows found = reader.query(sql);
  std::vector<std::string> actual;
  for (const Row row : found) actual.push_back(render_row(found, row));
  if (rows == actual) return;
  fail("expected the rows\n" + list_rows(rows) + "but \"" + std::string{sql} + "\" gives\n" +
       list_rows(actual));
}

void Bench::rebuild() {
  Replayer{projections}.run();
}

std::vector<std::string> Bench::all_rows() {
  std::vector<std::string> all;
  const Rows tables = reader.query("SELECT name FROM sqlite_schema WHERE type = 'view'");
  for (const Row table : tables) {
    const auto name = table.get<std::string>("name");
    const Rows found = reader.query("SELECT * FROM \"" + name + '"');
    for (const Row row : found) all.push_back(name + ": " + render_row(found, row));
  }
  std::sort(all.begin(), all.end());
  return all;
}

void Bench::expect_same_after_rebuild() {
  const std::vector<std::string> before = all_rows();
  rebuild();
  const std::vector<std::string> after = all_rows();
  if (before == after) return;
  fail("the tables have the rows\n" + list_rows(before) + "and after a rebuild\n" +
       list_rows(after));
}

void Bench::forget(const StreamId& subject) {
  stela::forget(store, subject, {.by = "a test", .reason = ""});
}

}  // namespace stela::testing::detail

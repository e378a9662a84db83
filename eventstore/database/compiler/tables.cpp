#include "tables.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::compiler {
namespace {

/// How an engine says it. Names in braces stand for what differs from table to table, and from
/// column to column.
struct Dialect {
  std::string_view save;
  std::string_view load;
  /// A part of the key before a page.
  std::string_view key;
  /// What a row says of a column, and that as the column's value.
  std::string_view said;
  std::string_view value;
  std::string_view bytes;
  std::string_view bytes_as_text;
};

constexpr Dialect sqlite{.save = R"(SELECT json_array({keys}) AS key,
       json_patch('{}', json_object({row})) AS line
FROM {table} AS t
WHERE ({keys}) > ({after}) AND ({where})
ORDER BY {keys} LIMIT :most)",
                         .load = R"(INSERT INTO {table} ({columns})
SELECT {values}
FROM json_each(:rows))",
                         .key = ":after ->> {number}",
                         .said = "value ->> '{name}'",
                         .value = "coalesce({said}, {default})",
                         .bytes = "stela_from_base64({said})",
                         .bytes_as_text = "stela_to_base64(t.{name})"};

constexpr Dialect postgres{.save = R"(SELECT json_build_array({keys})::text AS key,
       json_strip_nulls(json_build_object({row}))::text AS line
FROM {table} AS t
WHERE ({keys}) > ({after}) AND ({where})
ORDER BY {keys} LIMIT :most)",
                           .load = R"(INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE
SELECT {values}
FROM jsonb_array_elements(:rows::jsonb) AS j(line),
     jsonb_populate_record(NULL::{table},
                           jsonb_build_object({defaults}) || (j.line - 'stream')) AS r)",
                           .key = "(:after::json ->> {number})::{type}",
                           .said = "j.line ->> '{name}'",
                           .value = "r.{name}",
                           .bytes = "decode({said}, 'base64')",
                           .bytes_as_text = R"(translate(encode(t.{name}, 'base64'), E'\n', ''))"};

using Names = std::vector<std::pair<std::string_view, std::string>>;

/// `text` with what the names stand for.
std::string filled(std::string_view text, const Names& names) {
  std::string filled{text};
  for (const auto& [name, value] : names) {
    for (auto at = filled.find(name); at != std::string::npos; at = filled.find(name)) {
      filled.replace(at, name.size(), value);
    }
  }
  return filled;
}

/// What `text_of` says of the columns.
template <class TextOf>
std::string list(const std::vector<Column>& columns, TextOf text_of) {
  std::string all;
  for (std::size_t at = 0; at < columns.size(); ++at) {
    const Column& column = columns[at];
    all += (at == 0 ? "" : ", ") +
           filled(text_of(column), {{"{name}", column.name},
                                    {"{default}", column.otherwise},
                                    {"{type}", column.is_text() ? "text" : "bigint"},
                                    {"{number}", std::to_string(at)}});
  }
  return all;
}

bool is_named(const Column& column, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name.substr(0, name.find(" = ")) == column.name;
  });
}

/// The statements of a table with this key, of which these columns move.
Names names_in(const Dialect& dialect, const Table& table, const std::vector<Column>& key,
               const std::vector<Column>& moved) {
  const auto saved = [&](const Column& column) {
    const std::string value = column.name == "stream"
                                  ? "(SELECT s.name FROM streams AS s WHERE s.stream = t.stream)"
                              : column.is_bytes() ? std::string{dialect.bytes_as_text}
                                                  : "t.{name}";
    return "'{name}', " + value;
  };
  const auto loaded = [&](const Column& column) {
    return filled(column.name == "stream"
                      ? "(SELECT s.stream FROM streams AS s WHERE s.name = {said})"
                  : column.is_bytes() ? dialect.bytes
                                      : dialect.value,
                  {{"{said}", std::string{dialect.said}}});
  };
  std::string columns = list(moved, [](const Column&) { return "{name}"; });
  std::string values = list(moved, loaded);
  for (const std::string& set : table.sets) {
    columns += ", " + set.substr(0, set.find(" = "));
    values += ", " + set.substr(set.find(" = ") + 3);
  }
  return {{"{table}", table.name},
          {"{where}", table.where.empty() ? "true" : table.where},
          {"{columns}", columns},
          {"{values}", values},
          {"{keys}", list(key, [](const Column&) { return "t.{name}"; })},
          {"{after}", list(key, [&](const Column&) { return dialect.key; })},
          {"{row}", list(moved, saved)},
          {"{defaults}", list(moved, [](const Column&) { return "'{name}', {default}"; })}};
}

void add_statements(StatementFile& file, Table& table, const std::vector<Column>& columns) {
  std::vector<Column> key;
  std::vector<Column> moved;
  for (const Column& column : columns) {
    if (column.is_key) key.push_back(column);
    if (!is_named(column, table.stays) && !is_named(column, table.sets)) moved.push_back(column);
  }
  // As many as there are names, if each is a column's.
  if (moved.size() + table.stays.size() + table.sets.size() != columns.size()) {
    throw Malformed{table.line, "'" + table.name + "' or one of its columns doesn't exist"};
  }
  const Names names = names_in(sqlite, table, key, moved);
  const Names on_postgres = names_in(postgres, table, key, moved);
  file.statements.push_back(
      {.name = "save_" + table.name,
       .text = filled(sqlite.save, names),
       .on_postgres = filled(postgres.save, on_postgres),
       .parameters = {{"after", Type::text, false}, {"most", Type::integer, false}},
       .columns = {{"key", Type::text, false}, {"line", Type::text, false}},
       .line = table.line});
  file.statements.push_back({.name = "load_" + table.name,
                             .text = filled(sqlite.load, names),
                             .on_postgres = filled(postgres.load, on_postgres),
                             .parameters = {{"rows", Type::text, false}},
                             .line = table.line});
  const auto first = [](const Column& column) {
    return column.is_text() ? "\"\"" : "-9223372036854775808";
  };
  table.before_first = '[' + list(key, first) + ']';
}

}  // namespace

void add_statements_of_tables(StatementFile& file, const Schema& schema) {
  for (Table& table : file.tables) add_statements(file, table, schema.columns(table.name));
}

}  // namespace stela::compiler

#include "header.hpp"

#include "postgres_text.hpp"

#include <sstream>

namespace stela::compiler {
namespace {

struct Spelling {
  std::string_view type;
  std::string_view bind;
  std::string_view read;
};

Spelling spelling_of(Type type) {
  switch (type) {
    case Type::integer:
      return {"std::int64_t", "bind", "integer"};
    case Type::boolean:
      return {"bool", "bind_bool", "boolean"};
    case Type::time:
      return {"Timestamp", "bind_time", "time"};
    case Type::text:
      return {"std::string_view", "bind", "text"};
    case Type::blob:
      return {"std::string_view", "bind_blob", "blob"};
  }
  return {};
}

std::string type_of(const Value& value) {
  const std::string type{spelling_of(value.type).type};
  return value.is_optional ? "std::optional<" + type + '>' : type;
}

void write_comment(std::ostream& out, std::string_view comment) {
  std::istringstream lines{std::string{comment}};
  for (std::string line; std::getline(lines, line);) out << "/// " << line << '\n';
}

void write_accessor(std::ostream& out, const Value& column, std::size_t at) {
  const std::string_view read = spelling_of(column.type).read;
  out << "  " << type_of(column) << ' ' << column.name << "() const {\n    ";
  if (column.is_optional) {
    out << "if (Query::is_null(" << at << ")) return std::nullopt;\n    ";
  }
  out << "return Query::" << read << '(' << at << ");\n  }\n";
}

void write_row(std::ostream& out, std::string_view layer, std::string_view name,
               const std::vector<Value>& columns) {
  out << "class " << name << " : private " << layer << "::Query {\n  using Query = " << layer
      << "::Query;\n\n public:\n  using Query::Query;\n  using Query::run;\n  using Query::step;\n";
  for (std::size_t at = 0; at < columns.size(); ++at) write_accessor(out, columns[at], at);
  out << "};\n";
}

void write_bind(std::ostream& out, std::string_view layer, const Statement& statement) {
  if (statement.parameters.empty()) {
    out << "  void bind(" << layer << "::Query& /*query*/) const {}\n";
    return;
  }
  out << "  void bind(" << layer << "::Query& query) const {\n";
  for (std::size_t at = 0; at < statement.parameters.size(); ++at) {
    const Value& parameter = statement.parameters[at];
    const std::string number = std::to_string(statement.numbers[at]);
    const std::string bind =
        "query." + std::string{spelling_of(parameter.type).bind} + '(' + number + ", ";
    if (parameter.is_optional) {
      out << "    " << parameter.name << " ? " << bind << '*' << parameter.name << ") : query.bind("
          << number << ", nullptr);\n";
    } else {
      out << "    " << bind << parameter.name << ");\n";
    }
  }
  out << "  }\n";
}

void write_statement(std::ostream& out, std::string_view layer, const Statement& statement,
                     bool is_engines) {
  write_comment(out, statement.comment);
  out << "struct " << statement.name << " {\n";
  for (const Value& parameter : statement.parameters) {
    out << "  " << type_of(parameter) << ' ' << parameter.name << ";\n";
  }
  out << "\n  static constexpr std::string_view sql = R\"sql(" << statement.text << ")sql\";\n";
  if (!is_engines) {
    out << "  static constexpr std::string_view on_postgres = R\"sql(" << postgres_text(statement)
        << ")sql\";\n";
  }
  write_bind(out, layer, statement);
  if (!statement.row.empty()) {
    out << "  using Row = " << statement.row << "_row;\n";
  } else if (!statement.columns.empty()) {
    std::ostringstream row;
    write_row(row, layer, "Row", statement.columns);
    out << row.str();
  }
  out << "};\n\n";
}

/// The list is for a test that lets a server prepare all statements.
void write_list(std::ostream& out, const StatementFile& file, std::string_view source) {
  out << "/// All of them, for PostgreSQL.\ninline constexpr std::string_view "
      << source.substr(0, source.find('.')) << "_on_postgres[] = {\n";
  for (const Statement& statement : file.statements) {
    out << "    " << statement.name << "::on_postgres,\n";
  }
  out << "};\n\n";
}

}  // namespace

std::string header_of(const StatementFile& file, std::string_view module, std::string_view source) {
  // An engine's own statements use its types; all others run on any engine.
  const bool is_engines = module == "sqlite";
  const std::string_view layer = is_engines ? "sqlite" : "database";
  std::ostringstream out;
  out << "// Generated from " << source << ".\n#pragma once\n\n#include \"database/"
      << (is_engines ? "sqlite/connection" : "connection") << ".hpp\"\n\n"
      << "#include <cstdint>\n#include <optional>\n#include <string_view>\n\n"
      << "namespace stela::" << module << "::sql {\n\n";
  for (const Row& row : file.rows) {
    write_row(out, layer, row.name + "_row", row.columns);
    out << '\n';
  }
  for (const Statement& statement : file.statements) {
    write_statement(out, layer, statement, is_engines);
  }
  if (!is_engines) write_list(out, file, source);
  out << "}  // namespace stela::" << module << "::sql\n";
  return out.str();
}

}  // namespace stela::compiler

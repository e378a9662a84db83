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
    case Type::int4:
      return {"std::int64_t", "bind", "integer"};
    case Type::uuid:
      return {"Uuid", "bind_uuid", "uuid"};
  }
  return {};
}

/// The C++ type of a field of a statement or a row.
std::string type_of(const Value& value) {
  if (!value.row.empty()) return value.row + "_rows&";
  if (value.is_array) return "postgres::Array&";
  const std::string type{spelling_of(value.type).type};
  return value.is_optional ? "std::optional<" + type + '>' : type;
}

void write_comment(std::ostream& out, std::string_view comment) {
  std::istringstream lines{std::string{comment}};
  for (std::string line; std::getline(lines, line);) out << "/// " << line << '\n';
}

void write_accessor(std::ostream& out, const Value& column, std::size_t at) {
  const std::string_view read = column.is_array ? "integers" : spelling_of(column.type).read;
  const std::string type = column.is_array ? "std::vector<std::int64_t>" : type_of(column);
  out << "  " << type << ' ' << column.name << "() const {\n    ";
  if (column.is_optional) {
    out << "if (Query::is_null(" << at << ")) return std::nullopt;\n    ";
  }
  out << "return Query::" << read << '(' << at << ");\n  }\n";
}

/// `query`: the class that reads columns by their numbers.
void write_row(std::ostream& out, std::string_view query, std::string_view name,
               const std::vector<Value>& columns) {
  out << "class " << name << " : private " << query << " {\n  using Query = " << query
      << ";\n\n public:\n  using Query::Query;\n";
  if (query != "postgres::NamedRows") out << "  using Query::run;\n";
  out << "  using Query::step;\n";
  for (std::size_t at = 0; at < columns.size(); ++at) write_accessor(out, columns[at], at);
  out << "};\n";
}

void write_bind(std::ostream& out, std::string_view query, const Statement& statement) {
  if (statement.parameters.empty()) {
    out << "  void bind(" << query << "& /*query*/) const {}\n";
    return;
  }
  out << "  void bind(" << query << "& query) const {\n";
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

/// How a value is passed in PostgreSQL's binary protocol: as a parameter, as NULL, in an array.
struct Wire {
  std::string_view add;
  std::string_view oid;
  std::string_view add_to_array;
  std::string_view array;
};

Wire wire_of(Type type) {
  switch (type) {
    case Type::integer:
      return {"add", "int8", "add", "of_int8"};
    case Type::boolean:
      return {"add_bool", "int8", "add_bool", "of_bool"};
    case Type::time:
      return {"add_time", "int8", "add_time", "of_int8"};
    case Type::text:
      return {"add", "text", "add_bytes", "of_text"};
    case Type::blob:
      return {"add_bytes", "bytes", "add_bytes", "of_bytes"};
    case Type::int4:
      return {"add", "int8", "add_int4", "of_int4"};
    case Type::uuid:
      return {"add_uuid", "uuid", "add_uuid", "of_uuid"};
  }
  return {};
}

/// Writes a C++ statement that adds a value, or NULL if it is missing.
void write_add(std::ostream& out, const std::string& add, const std::string& value,
               const std::string& add_null, bool is_optional) {
  out << "    ";
  if (is_optional) out << value << " ? ";
  out << add << '(' << (is_optional ? "*" : "") << value << ')';
  if (is_optional) out << " : " << add_null;
  out << ";\n";
}

/// Writes the class of rows that statements take: each column becomes an array.
void write_taken(std::ostream& out, const Row& row) {
  out << "class " << row.name << "_rows {\n public:\n  struct Row {\n";
  for (const Value& column : row.columns) {
    out << "    " << type_of(column) << ' ' << column.name << ";\n";
  }
  out << "  };\n  void add(const Row& row) {\n";
  for (const Value& column : row.columns) {
    const std::string array = column.name + "_.";
    write_add(out, array + std::string{wire_of(column.type).add_to_array}, "row." + column.name,
              array + "add_null()", column.is_optional);
  }
  out << "  }\n  bool is_empty() const noexcept { return " << row.columns.front().name
      << "_.is_empty(); }\n  void add_to(postgres::Parameters& all) {\n";
  for (const Value& column : row.columns) out << "    all.add(" << column.name << "_);\n";
  out << "  }\n\n private:\n";
  for (const Value& column : row.columns) {
    out << "  postgres::Array " << column.name
        << "_ = postgres::Array::" << wire_of(column.type).array << "();\n";
  }
  out << "};\n";
}

void write_parameters(std::ostream& out, const Statement& statement) {
  out << "  postgres::Parameters parameters() const {\n    postgres::Parameters all;\n";
  for (const Value& parameter : statement.parameters) {
    const Wire wire = wire_of(parameter.type);
    if (!parameter.row.empty()) {
      out << "    " << parameter.name << ".add_to(all);\n";
    } else {
      write_add(out, "all." + std::string{parameter.is_array ? "add" : wire.add}, parameter.name,
                "all.add_null(postgres::type::" + std::string{wire.oid} + ')',
                parameter.is_optional);
    }
  }
  out << "    return all;\n  }\n";
}

/// The engine that a file's statements are for.
struct Engine {
  std::string_view header;
  /// The class that reads columns by their numbers, and takes parameters.
  std::string_view query;
  bool is_sqlite = false;
  bool is_postgres = false;
};

void write_text(std::ostream& out, std::string_view name, std::string_view text) {
  out << "  static constexpr std::string_view " << name << " = R\"sql(" << text << ")sql\";\n";
}

void write_statement(std::ostream& out, const Engine& engine, const Statement& statement) {
  write_comment(out, statement.comment);
  out << "struct " << statement.name << " {\n";
  for (const Value& parameter : statement.parameters) {
    out << "  " << type_of(parameter) << ' ' << parameter.name << ";\n";
  }
  out << '\n';
  if (engine.is_postgres) {
    write_text(out, "sql", postgres_text(statement));
    write_text(out, "doing", statement.doing.empty() ? "a statement" : statement.doing);
    write_parameters(out, statement);
  } else {
    write_text(out, "sql", statement.text);
    if (!engine.is_sqlite) write_text(out, "on_postgres", postgres_text(statement));
    write_bind(out, engine.query, statement);
  }
  if (!statement.row.empty()) {
    out << "  using Row = " << statement.row << "_row;\n";
  } else if (!statement.columns.empty()) {
    std::ostringstream row;
    write_row(row, engine.query, "Row", statement.columns);
    out << row.str();
  }
  out << "};\n\n";
}

void write_tables(std::ostream& out, const StatementFile& file, std::string_view source) {
  out << "/// The tables that move, in the order of the file.\n"
      << "inline constexpr database::MovedTable " << source.substr(0, source.find('.'))
      << "_tables[] = {\n";
  for (const Table& table : file.tables) {
    out << "    {\"" << table.name << "\", R\"(" << table.before_first
        << ")\",\n     &database::save_rows<save_" << table.name << ">, &database::load_rows<load_"
        << table.name << ">},\n";
  }
  out << "};\n\n";
}

/// Writes the list for a test that lets a server prepare all statements.
void write_list(std::ostream& out, const StatementFile& file, std::string_view source) {
  out << "/// All of them, for PostgreSQL.\ninline constexpr std::string_view "
      << source.substr(0, source.find('.')) << "_on_postgres[] = {\n";
  for (const Statement& statement : file.statements) {
    out << "    " << statement.name << "::on_postgres,\n";
  }
  out << "};\n\n";
}

/// Writes the declarations for a test that compares them with a server, because nothing else does.
void write_declarations(std::ostream& out, const StatementFile& file, std::string_view source) {
  out << "/// All of them, with the columns that they declare.\n"
      << "inline constexpr postgres::Declaration " << source.substr(0, source.find('.'))
      << "_declarations[] = {\n";
  for (const Statement& statement : file.statements) {
    out << "    {" << statement.name << "::sql, \"";
    for (const Value& column : statement.columns) {
      const Type type = column.type == Type::time ? Type::integer : column.type;
      out << column.name << ' ' << spelling_of(type).read << (column.is_array ? "s " : " ");
    }
    out << "\"},\n";
  }
  out << "};\n\n";
}

/// An engine's own statements are bound to it; all others run on any.
Engine engine_of(const StatementFile& file, std::string_view module) {
  if (file.is_postgres) {
    return {.header = "postgres/connection", .query = "postgres::NamedRows", .is_postgres = true};
  }
  if (module == "sqlite") {
    return {.header = "sqlite/connection", .query = "sqlite::Query", .is_sqlite = true};
  }
  return {.header = "connection", .query = "database::Query"};
}

}  // namespace

std::string header_of(const StatementFile& file, std::string_view module, std::string_view source) {
  const Engine engine = engine_of(file, module);
  std::ostringstream out;
  out << "// Generated from " << source << ".\n#pragma once\n\n#include \"database/"
      << (file.tables.empty() ? engine.header : "moved_tables") << ".hpp\"\n\n"
      << "#include <cstdint>\n#include <optional>\n#include <string_view>\n"
      << (engine.is_postgres ? "#include <vector>\n\n" : "\n") << "namespace stela::" << module
      << "::sql {\n\n";
  for (const Row& row : file.rows) {
    if (row.is_taken) {
      write_taken(out, row);
    } else {
      write_row(out, engine.query, row.name + "_row", row.columns);
    }
    out << '\n';
  }
  for (const Statement& statement : file.statements) write_statement(out, engine, statement);
  if (engine.is_postgres) {
    write_declarations(out, file, source);
  } else if (!engine.is_sqlite) {
    write_list(out, file, source);
  }
  if (!file.tables.empty()) write_tables(out, file, source);
  out << "}  // namespace stela::" << module << "::sql\n";
  return out.str();
}

}  // namespace stela::compiler

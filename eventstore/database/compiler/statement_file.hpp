// The statements of a .sql file, as they are declared in it.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stela::compiler {

/// Of a parameter or a column. Times are microseconds since the epoch, kept as integers.
enum class Type { integer, boolean, time, text, blob };

struct Value {
  std::string name;
  Type type;
  /// May be NULL. A column that isn't, but is NULL after all, reads as 0 or as empty.
  bool is_optional;
};

/// The columns of several statements, under one name.
struct Row {
  std::string name;
  std::vector<Value> columns;
};

struct Statement {
  std::string name;
  std::string comment;
  std::string text;
  /// What takes its place on PostgreSQL; empty if that is made of `text`.
  std::string on_postgres;
  std::vector<Value> parameters;
  /// SQLite's numbers of the parameters.
  std::vector<int> numbers;
  std::vector<Value> columns;
  /// The row of that name, which has its columns; empty for a row of its own, or none.
  std::string row;
  int line = 0;
};

struct StatementFile {
  std::vector<Row> rows;
  std::vector<Statement> statements;
};

/// What is wrong, with the line.
struct Malformed : std::runtime_error {
  Malformed(int at, const std::string& what) : std::runtime_error{what}, line{at} {}
  int line;
};

/// Reads
///
///     -- row: event
///     -- gives: sequence int, correlation text?, payload blob
///
///     -- name: read_stream
///     -- What it is for.
///     -- takes: stream int, after int
///     -- gives: event
///     SELECT ... WHERE stream = :stream AND version > :after;
///
/// After a line `-- engine: postgres` comes the text for that engine, if it has to be another one.
///
/// `takes` and `gives` go on in lines that begin with three spaces or more.
StatementFile parse(std::string_view text);

}  // namespace stela::compiler

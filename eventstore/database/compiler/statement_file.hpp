// The statements of a .sql file, as declared there.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stela::compiler {

/// The type of a parameter or a column. Times are microseconds since the epoch, kept as integers.
enum class Type { integer, boolean, time, text, blob };

struct Value {
  std::string name;
  Type type;
  /// May be NULL. A NULL in any other column reads as 0 or as empty.
  bool is_optional;
};

/// A named list of columns that several statements share.
struct Row {
  std::string name;
  std::vector<Value> columns;
};

struct Statement {
  std::string name;
  std::string comment;
  std::string text;
  /// The text for PostgreSQL; empty if it is derived from `text`.
  std::string on_postgres;
  std::vector<Value> parameters;
  /// SQLite's numbers for the parameters.
  std::vector<int> numbers;
  std::vector<Value> columns;
  /// The name of the shared row with its columns; empty for a row of its own, or none.
  std::string row;
  int line = 0;
};

struct StatementFile {
  std::vector<Row> rows;
  std::vector<Statement> statements;
};

/// An error in the file, with its line.
struct Malformed : std::runtime_error {
  Malformed(int at, const std::string& what) : std::runtime_error{what}, line{at} {}
  int line;
};

/// Parses
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
/// A line `-- engine: postgres` starts the text for that engine, if it must differ.
///
/// `takes` and `gives` continue in lines that begin with three spaces or more.
StatementFile parse(std::string_view text);

}  // namespace stela::compiler

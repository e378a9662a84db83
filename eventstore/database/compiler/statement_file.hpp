// The statements of a .sql file, as declared there.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stela::compiler {

/// The type of a parameter or a column. Times are microseconds since the epoch, stored as integers.
/// The last two types are only for PostgreSQL.
enum class Type { integer, boolean, time, text, blob, int4, uuid };

struct Value {
  std::string name;
  Type type;
  /// May be NULL. NULL in any other column reads as 0 or as empty.
  bool is_optional = false;
  bool is_array = false;
  /// For a parameter that is a list of rows: the row's name and columns.
  std::string row = {};
  std::vector<Value> columns = {};
};

/// A named list of columns that several statements share.
struct Row {
  std::string name;
  std::vector<Value> columns;
  /// Statements take lists of these rows.
  bool is_taken = false;
};

struct Statement {
  std::string name;
  std::string comment = {};
  /// The failed operation, for an error text.
  std::string doing = {};
  /// Empty for a statement that only PostgreSQL runs.
  std::string text;
  /// The text for PostgreSQL; empty if it is derived from `text`.
  std::string on_postgres;
  std::vector<Value> parameters;
  /// The parameters' numbers: SQLite's, or PostgreSQL's if only that runs the statement.
  std::vector<int> numbers = {};
  std::vector<Value> columns = {};
  /// The name of the shared row with its columns; empty for a row of its own, or none.
  std::string row = {};
  int line = 0;
};

/// A table whose rows move with their store as JSON. A number in a column `stream` moves as the
/// stream's name, and bytes move as base64.
struct Table {
  std::string name;
  /// Which rows move, where `t` is the table; empty: all.
  std::string where;
  /// Columns that don't move; and those that every row gets when it is loaded, as `kind = 'async'`.
  std::vector<std::string> stays;
  std::vector<std::string> sets;
  int line = 0;
  /// The key before that of any row, as a JSON array.
  std::string before_first = {};
};

struct StatementFile {
  std::vector<Row> rows;
  std::vector<Table> tables;
  std::vector<Statement> statements;
  /// Only PostgreSQL runs the statements.
  bool is_postgres = false;
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
/// The lists of `takes` and `gives` continue in lines that begin with at least three spaces.
///
/// PostgreSQL's own statements name their operation for error texts in `doing`. They may take
/// arrays, and lists of rows, where each column becomes an array:
///
///     -- row: label
///     -- takes: shelf int, text text?
///
///     -- name: insert_labels
///     -- doing: storing labels
///     -- takes: labels label[], shelves int[]
///     INSERT INTO labels (shelf, text) SELECT * FROM unnest(:labels) ...;
///
/// A table that moves is described:
///
///     -- table: books
///     -- where: t.state <> 'lost'
///     -- stays: lent_to, lent_at
///     -- sets: state = 'shelved'
StatementFile parse(std::string_view text);

}  // namespace stela::compiler

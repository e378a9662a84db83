// Whether a database can be written to, judged without writing to it.
#pragma once

#include <optional>
#include <string>

namespace stela::tool {

struct WriteProblem {
  /// The predicate of "the database": "can't be written to: its disk is full".
  std::string what;
  /// Its owner may write to it, but this user may not.
  bool is_of_this_user = false;
};

/// Empty if nothing prevents writing: its file system is mounted for writing and has space, and
/// this user may write to the file, to those beside it and to the folder. Also empty if the file
/// doesn't exist.
std::optional<WriteProblem> find_write_problem(const std::string& database);

}  // namespace stela::tool

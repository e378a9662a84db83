// Whether a database can be written to, as far as can be seen without writing to it.
#pragma once

#include <optional>
#include <string>

namespace stela::tool {

struct WriteProblem {
  /// Behind "the database": "can't be written to: its disk is full".
  std::string what;
  /// Its owner may write to it, and this user, who isn't the owner, may not.
  bool is_of_this_user = false;
};

/// Nothing if nothing is in the way: its file system is mounted to be written to and has space, and
/// this user may write to the file, to those beside it and to the folder. Nothing either if there
/// is no such file.
std::optional<WriteProblem> find_write_problem(const std::string& database);

}  // namespace stela::tool

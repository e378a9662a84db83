// synchronous_standby_names: the standbys that confirm commits, and how many must.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

struct StandbyNames {
  /// The number of standbys that must confirm each commit.
  int wanted = 1;
  /// In lower case. "*" is any standby.
  std::vector<std::string> names = {};

  bool has(std::string_view name) const;
};

/// Parses a value that the server accepted: "FIRST 2 (db2, db3)", "ANY 1 (*)", "db2, \"db 3\"".
StandbyNames parse_standby_names(std::string_view text);

}  // namespace stela::tool

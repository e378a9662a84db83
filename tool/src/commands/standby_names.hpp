// synchronous_standby_names: which standbys confirm commits, and how many of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

struct StandbyNames {
  /// How many must confirm each commit.
  int wanted = 1;
  /// In small letters; "*" is any.
  std::vector<std::string> names = {};

  bool has(std::string_view name) const;
};

/// "FIRST 2 (db2, db3)", "ANY 1 (*)", "db2, \"db 3\"": as the server has accepted it.
StandbyNames parse_standby_names(std::string_view text);

}  // namespace stela::tool

// Parses the configuration file, TOML, and keeps line numbers.
#pragma once

#include <string>
#include <vector>

namespace stela::tool {

struct ConfigEntry {
  /// "outbox.lease_ttl".
  std::string key;
  std::string value;
  int line = 0;
};

/// The file's settings, in order. Misuse, naming the line, if it isn't TOML or a value is neither a
/// text nor a number nor true or false. Exit 3 if the file is missing, and 2 if anybody but the
/// user and root may have written it.
std::vector<ConfigEntry> read_config_file(const std::string& path);

}  // namespace stela::tool

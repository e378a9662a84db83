// The configuration file: TOML, taken apart with its lines.
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

/// What the file sets, in its order. Misuse, naming the line, if it isn't TOML or a value is
/// neither a text nor a number nor true or false; Exit 3 if there is no such file, and 2 if
/// somebody other than the user and root may have written it.
std::vector<ConfigEntry> read_config_file(const std::string& path);

}  // namespace stela::tool

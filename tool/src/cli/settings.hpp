// The configuration: what can be set, and where each value comes from.
#pragma once

#include "cli/arguments.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

struct Setting {
  enum class Kind : std::uint8_t { text, choice, integer, number, boolean, duration };
  /// "outbox.lease_ttl": the table and the name in the file; STELA_OUTBOX_LEASE_TTL outside.
  std::string_view key;
  Kind kind = Kind::text;
  std::string standard = {};
  std::string_view summary = {};
  /// Of a choice: "text|json".
  std::string_view choices = {};
  Range range = {};

  /// "STELA_OUTBOX_LEASE_TTL".
  std::string variable() const;
};

const std::vector<Setting>& all_settings();

/// Flags win over the environment, that over the file, that over the defaults.
/// Threads: any number may read.
class Settings {
 public:
  struct Value {
    std::string text;
    /// "default", "stela.toml:3", "STELA_DB", "--db".
    std::string origin;
  };

  /// Reads the file and the environment. Misuse, with the origin, at a setting that doesn't exist
  /// and at a value that isn't one.
  static Settings load(std::span<const Option> options, const Arguments& arguments);

  const Value& value(std::string_view key) const;
  bool is_set(std::string_view key) const { return value(key).origin != "default"; }
  /// Empty if nobody set it and it has no default.
  const std::string& text(std::string_view key) const { return value(key).text; }
  std::int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::chrono::milliseconds duration(std::string_view key) const;

  /// Misuse if there is no such setting, or `text` isn't one of its values.
  void set(std::string_view key, std::string text, std::string origin);

 private:
  void read_file(const std::string& path);
  void read_environment();

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace stela::tool

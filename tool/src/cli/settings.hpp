// The configuration: its settings, and the origin of each value.
#pragma once

#include "cli/arguments.hpp"

#include <stela/framework/settings.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stela::tool {

/// A setting of the library or the tool, with its key in the configuration.
struct ConfiguredSetting : SettingFacts {
  /// "outbox.lease_ttl": the table and the name in the file. The environment variable is
  /// STELA_OUTBOX_LEASE_TTL.
  std::string key = {};
  /// The default in its written form. Empty if there is none.
  std::string standard = {};

  /// "STELA_OUTBOX_LEASE_TTL".
  std::string variable() const;
};

const std::vector<ConfiguredSetting>& all_settings();

/// Flags override the environment, which overrides the file, which overrides the defaults. Threads:
/// any number may read.
class Settings {
 public:
  struct Value {
    std::string text;
    /// "default", "stela.toml:3", "STELA_DB", "--db".
    std::string origin;
  };

  /// The defaults.
  Settings();
  /// Reads the file and the environment. Misuse, with the origin, for an unknown setting or an
  /// invalid value.
  static Settings load(std::span<const Option> options, const Arguments& arguments);

  const Value& value(std::string_view key) const;
  bool is_set(std::string_view key) const { return value(key).origin != "default"; }
  /// Empty if it is unset and has no default.
  const std::string& text(std::string_view key) const { return value(key).text; }
  /// The file that a setting of the key store names, or the one beside the key store.
  std::string key_file(std::string_view key, const char* ending) const {
    return text(key).empty() ? text("keys.store") + ending : text(key);
  }
  std::int64_t integer(std::string_view key) const { return get<std::int64_t>(key); }
  bool boolean(std::string_view key) const { return get<bool>(key); }
  std::chrono::milliseconds duration(std::string_view key) const {
    return get<std::chrono::milliseconds>(key);
  }

  /// Sets the members of `options` that are configured in `table`; the others stay.
  template <class Options>
  void apply(std::string_view table, std::span<const Setting<Options>> settings,
             Options& options) const {
    for (const Setting<Options>& setting : settings) {
      const std::string key = key_of(table, setting.name);
      if (!key.empty() && is_set(key)) setting.set(options, parsed(key));
    }
  }

  /// Misuse if there is no such setting, or `text` is not one of its values.
  void set(std::string_view key, std::string text, std::string origin);

 private:
  /// Empty if it can't be configured.
  static std::string key_of(std::string_view table, std::string_view name);
  SettingValue parsed(std::string_view key) const;
  template <class T>
  T get(std::string_view key) const {
    return std::get<T>(parsed(key));
  }
  void read_file(const std::string& path);
  void read_environment();

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace stela::tool

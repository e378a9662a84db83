#include "cli/settings.hpp"

#include "cli/config_file.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <stela/eventstore/detail/postgres_settings.hpp>
#include <stela/eventstore/detail/sqlite_settings.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/nats/detail/settings.hpp>
#include <stela/outbox/detail/settings.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

extern char** environ;

namespace stela::tool {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view default_file = "stela.toml";

/// Settings whose key differs from their name in the library. An empty key omits one.
struct Renamed {
  std::string_view from;
  std::string_view to;
};
constexpr Renamed renamed[] = {{"outbox.worker", "worker.id"},
                               {"outbox.idle_backoff", "outbox.idle_backoff_ms"},
                               {"nats.publish_timeout", "outbox.publish_timeout"},
                               {"store.checkpoint_pages", ""}};

constexpr SettingFacts database_setting{.name = "db",
                                        .summary = "the database: a file, or a postgresql:// URL"};
constexpr SettingFacts tenant_settings[] = {
    {.name = "tenants", .summary = "the registry of tenants", .unset = ""},
    {.name = "tenant", .summary = "the tenant whose database it is", .unset = ""},
};
constexpr SettingFacts log_format{.name = "log",
                                  .summary = "how messages on stderr are written",
                                  .kind = SettingFacts::Kind::choice,
                                  .choices = "text|json",
                                  .unset = "text"};
constexpr SettingFacts of_keys[] = {
    {.name = "store", .summary = "the key store of personal fields"},
    {.name = "master", .summary = "the file of its master key", .unset = ""},
    {.name = "erasures", .summary = "its file of erasures, outside of the backups", .unset = ""},
};
constexpr SettingFacts of_workers[] = {
    {.name = "interval_ms",
     .summary = "a pause after each tick",
     .kind = SettingFacts::Kind::integer,
     .range = {0, 86'400'000},
     .unset = "0"},
    {.name = "max_lag",
     .summary = "a worker whose outbox lags longer isn't ready",
     .kind = SettingFacts::Kind::duration,
     .unset = "60s"},
    {.name = "window",
     .summary = "seconds that the dashboard adds up",
     .kind = SettingFacts::Kind::integer,
     .range = {0, 86'400},
     .unset = "0"},
};

/// True if the duration is written as a number of milliseconds.
bool is_in_ms(std::string_view key) {
  return key.ends_with("_ms");
}

std::string written(milliseconds duration) {
  const std::int64_t ms = duration.count();
  if (ms % 3'600'000 == 0 && ms > 0) return std::to_string(ms / 3'600'000) + "h";
  if (ms % 1'000 == 0) return std::to_string(ms / 1'000) + "s";
  return std::to_string(ms) + "ms";
}

std::string written(const SettingValue& value, std::string_view key) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* time = std::get_if<milliseconds>(&value)) {
    return is_in_ms(key) ? std::to_string(time->count()) : written(*time);
  }
  std::string text;
  json::append_double(text, std::get<double>(value));
  return text;
}

std::string configured_key(std::string_view table, std::string_view name) {
  const std::string key = std::string{table}.append(".").append(name);
  for (const auto& [from, to] : renamed) {
    if (from == key) return std::string{to};
  }
  return key;
}

const ConfiguredSetting* find_in(std::span<const ConfiguredSetting> settings,
                                 std::string_view key) {
  const auto at = std::find_if(settings.begin(), settings.end(),
                               [&](const auto& setting) { return setting.key == key; });
  return at == settings.end() ? nullptr : &*at;
}

template <class Options>
void add(std::vector<ConfiguredSetting>& all, std::string_view table,
         std::span<const Setting<Options>> settings) {
  const Options standard;
  for (const Setting<Options>& setting : settings) {
    const std::string key = configured_key(table, setting.name);
    if (key.empty() || find_in(all, key) != nullptr) continue;
    const auto value = setting.get(standard);
    all.push_back({setting, key, value ? written(*value, key) : std::string{setting.unset}});
  }
}

std::vector<ConfiguredSetting> gather_settings() {
  std::vector<ConfiguredSetting> all{{database_setting, "db"}, {log_format, "log", "text"}};
  for (const SettingFacts& facts : tenant_settings) {
    all.push_back({facts, std::string{facts.name}, ""});
  }
  for (const SettingFacts& facts : of_keys) {
    all.push_back({facts, configured_key("keys", facts.name), std::string{facts.unset}});
  }
  add(all, "store", sqlite::settings());
  add(all, "store", postgres::settings());
  add(all, "outbox", outbox_settings());
  add(all, "outbox", relay_settings());
  add(all, "nats", nats::publisher_settings());
  // Moves the worker's settings together, to the end.
  const auto id = std::find_if(all.begin(), all.end(),
                               [](const auto& setting) { return setting.key == "worker.id"; });
  std::rotate(id, id + 1, all.end());
  for (const SettingFacts& facts : of_workers) {
    all.push_back({facts, configured_key("worker", facts.name), std::string{facts.unset}});
  }
  return all;
}

template <class T>
std::optional<T> to_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Empty if `text` isn't a value of the setting's kind.
std::optional<SettingValue> parse(const ConfiguredSetting& setting, const std::string& text) {
  switch (setting.kind) {
    case SettingFacts::Kind::flag:
      if (text != "true" && text != "false") return std::nullopt;
      return text == "true";
    case SettingFacts::Kind::integer:
      return to_number<std::int64_t>(text);
    case SettingFacts::Kind::number:
      return to_number<double>(text);
    case SettingFacts::Kind::duration:
      if (!is_in_ms(setting.key)) return parse_duration(text);
      if (const auto ms = to_number<std::int64_t>(text)) return milliseconds{*ms};
      return std::nullopt;
    case SettingFacts::Kind::text:
    case SettingFacts::Kind::choice:
      break;
  }
  return text.find('\0') == std::string::npos ? std::optional<SettingValue>{text} : std::nullopt;
}

/// Describes the values of a setting: "a whole number from 1 to 1024".
std::string wanted_of(const ConfiguredSetting& setting, bool is_out_of_range) {
  switch (setting.kind) {
    case SettingFacts::Kind::text:
      return is_out_of_range ? range_of(setting) + " long" : "a text without a NUL";
    case SettingFacts::Kind::choice:
      return range_of(setting);
    case SettingFacts::Kind::flag:
      return "true or false";
    case SettingFacts::Kind::number:
      return "a number from " + range_of(setting);
    case SettingFacts::Kind::duration:
      if (is_in_ms(setting.key)) break;
      return is_out_of_range ? range_of(setting) : std::string{a_duration};
    case SettingFacts::Kind::integer:
      break;
  }
  return "a whole number from " + std::to_string(setting.range.least) + " to " +
         std::to_string(setting.range.most);
}

const ConfiguredSetting* find_setting(std::string_view key) {
  return find_in(all_settings(), key);
}

}  // namespace

std::string ConfiguredSetting::variable() const {
  std::string variable{"STELA_"};
  for (const char c : key) {
    variable += c == '.' ? '_' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return variable;
}

const std::vector<ConfiguredSetting>& all_settings() {
  static const std::vector<ConfiguredSetting> settings = gather_settings();
  return settings;
}

std::string Settings::key_of(std::string_view table, std::string_view name) {
  return configured_key(table, name);
}

SettingValue Settings::parsed(std::string_view key) const {
  return *parse(*find_setting(key), text(key));
}

void Settings::set(std::string_view key, std::string text, std::string origin) {
  const ConfiguredSetting* setting = find_setting(key);
  if (setting == nullptr) {
    std::vector<std::string_view> keys;
    for (const ConfiguredSetting& known : all_settings()) keys.push_back(known.key);
    throw Misuse{origin + ": there is no setting '" + in_one_line(key) + "'" +
                 did_you_mean(key, keys)};
  }
  if (const auto value = parse(*setting, text); !value || !allows(*setting, *value)) {
    throw Misuse{origin + ": " + std::string{key} + " is " +
                 wanted_of(*setting, value.has_value()) + ", not '" + in_one_line(text) + "'"};
  }
  if (key == "nats.url" && text.find('@') != std::string::npos) {
    throw Misuse{origin +
                 ": nats.url must not carry a user or a password: secrets come from files"};
  }
  values_[std::string{key}] = {std::move(text), std::move(origin)};
}

void Settings::read_file(const std::string& path) {
  for (ConfigEntry& entry : read_config_file(path)) {
    set(entry.key, std::move(entry.value), path + ":" + std::to_string(entry.line));
  }
}

void Settings::read_environment() {
  std::vector<std::string> names{"STELA_CONFIG"};
  for (const ConfiguredSetting& setting : all_settings()) names.push_back(setting.variable());
  const std::vector<std::string_view> known{names.begin(), names.end()};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view pair{*entry};
    const std::string_view name = pair.substr(0, pair.find('='));
    if (name.substr(0, 6) != "STELA_") continue;
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      // Other programs may use such names too, so only likely typing errors are refused.
      if (nearest(name, known, 2).empty()) continue;
      throw Misuse{std::string{"there is no setting "}.append(in_one_line(name)) +
                   did_you_mean(name, known)};
    } else if (at != known.begin()) {
      const auto index = static_cast<std::size_t>(at - known.begin()) - 1;
      set(all_settings()[index].key, std::string{pair.substr(name.size() + 1)}, std::string{name});
    }
  }
}

Settings::Settings() {
  for (const ConfiguredSetting& setting : all_settings()) {
    values_[setting.key] = {setting.standard, "default"};
  }
}

Settings Settings::load(std::span<const Option> options, const Arguments& arguments) {
  Settings settings;
  const char* named = std::getenv("STELA_CONFIG");
  std::error_code ignored;
  if (const auto file = arguments.text("--config")) {
    settings.read_file(*file);
  } else if (named != nullptr && *named != '\0') {
    settings.read_file(named);
  } else if (std::filesystem::exists(default_file, ignored)) {
    settings.read_file(std::string{default_file});
  }
  settings.read_environment();
  for (const std::string& assignment : arguments.all("--set")) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) {
      throw Misuse{"--set wants KEY=VALUE, not '" + in_one_line(assignment) + "'"};
    }
    settings.set(assignment.substr(0, equals), assignment.substr(equals + 1), "--set");
  }
  const auto take = [&](const Option& option) {
    if (option.setting.empty() || !arguments.has(option.name)) return;
    std::string value = *arguments.text(option.name);
    // A switch sets the opposite of the default: --no-leasing, --ensure-stream.
    if (option.value.empty()) value = option.name.substr(0, 5) == "--no-" ? "false" : "true";
    settings.set(option.setting, std::move(value), std::string{option.name});
  };
  for (const Option& option : options) take(option);
  for (const Option& option : common_options()) take(option);
  return settings;
}

const Settings::Value& Settings::value(std::string_view key) const {
  const auto at = values_.find(key);
  if (at == values_.end()) throw std::logic_error{"no setting " + std::string{key}};
  return at->second;
}

}  // namespace stela::tool

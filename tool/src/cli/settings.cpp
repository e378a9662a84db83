#include "cli/settings.hpp"

#include "cli/config_file.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <stela/outbox/relay_options.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>

extern char** environ;

namespace stela::tool {
namespace {

using Kind = Setting::Kind;
using std::chrono::milliseconds;

constexpr std::string_view default_file = "stela.toml";
constexpr Range any_count{1, 1'000'000'000};
constexpr Range anything{0, std::numeric_limits<std::int64_t>::max()};

std::string written(milliseconds duration) {
  const std::int64_t ms = duration.count();
  if (ms % 3'600'000 == 0) return std::to_string(ms / 3'600'000) + "h";
  if (ms % 1'000 == 0) return std::to_string(ms / 1'000) + "s";
  return std::to_string(ms) + "ms";
}

std::vector<Setting> make_settings() {  // NOLINT(readability-function-size): a table
  const RelayOptions relay;
  const auto time = [](std::string_view key, milliseconds standard, std::string_view summary) {
    return Setting{key, Kind::duration, written(standard), summary, {}, {}};
  };
  return {
      {"db", Kind::text, "", "the database", {}, {}},
      {"log", Kind::choice, "text", "how messages on stderr are written", "text|json", {}},
      {"store.busy_timeout", Kind::duration, "5s", "how long to wait for others' locks", {}, {}},
      {"outbox.partition_count", Kind::integer, "1", "for `outbox enable`", {}, {1, 1024}},
      {"outbox.fence", Kind::choice, "stream", "for `outbox enable`", "stream|subject|none", {}},
      {"outbox.leasing",
       Kind::boolean,
       "true",
       "whether workers share partitions by leases",
       {},
       {}},
      time("outbox.lease_ttl", relay.lease_ttl, "a worker silent for so long loses its partitions"),
      time("outbox.lease_renew", relay.lease_renew, "how often leases are renewed"),
      time("outbox.heartbeat_ttl", relay.heartbeat_ttl,
           "a worker silent for so long isn't counted"),
      {"outbox.batch_size",
       Kind::integer,
       std::to_string(relay.batch_size),
       "messages fetched and marked at once",
       {},
       {1, 100'000}},
      {"outbox.window",
       Kind::integer,
       std::to_string(relay.window),
       "messages of a partition in flight at most",
       {},
       {1, 1'000'000}},
      {"outbox.max_in_flight_bytes",
       Kind::integer,
       std::to_string(relay.max_in_flight_bytes),
       "bytes of payload that a worker has in flight at most",
       {},
       {1, std::int64_t{1} << 40}},
      {"outbox.idle_backoff_ms",
       Kind::integer,
       std::to_string(relay.idle_backoff.count()),
       "how long to wait when there was nothing to do",
       {},
       {1, 86'400'000}},
      time("outbox.claim_ttl", relay.claim_ttl, "without leasing: how long a claim lasts"),
      time("outbox.publish_timeout", relay.publish_timeout, "how long to wait for the broker"),
      time("outbox.retry_backoff", relay.retry_backoff, "the first wait after trouble"),
      time("outbox.retry_backoff_max", relay.retry_backoff_max, "the longest wait after trouble"),
      {"outbox.retry_jitter", Kind::number, "0.25", "how much waits vary, 0 to 1", {}, {0, 1}},
      {"outbox.max_attempts",
       Kind::integer,
       std::to_string(relay.max_attempts),
       "tries before a message is parked",
       {},
       any_count},
      {"outbox.on_poison",
       Kind::choice,
       std::string{to_string(relay.on_poison)},
       "what becomes of a message that the broker refuses",
       "park|halt|skip",
       {}},
      time("outbox.retention", relay.retention, "how long the log of batches is kept"),
      {"nats.url", Kind::text, "nats://127.0.0.1:4222", "the broker's servers", {}, {}},
      {"nats.stream", Kind::text, "STELA", "the JetStream stream", {}, {}},
      {"nats.prefix", Kind::text, "stela", "the subject prefix", {}, {}},
      {"nats.subject", Kind::text, "{event}", "what follows the prefix", {}, {}},
      {"nats.source", Kind::text, "", "ce-source, if it isn't the store's id", {}, {}},
      {"nats.ensure_stream", Kind::boolean, "false", "make the stream if it isn't there", {}, {}},
      {"nats.replicas", Kind::integer, "1", "of a stream that is made", {}, {1, 5}},
      {"nats.max_bytes", Kind::integer, "0", "of a stream that is made; 0: no limit", {}, anything},
      {"nats.max_age", Kind::duration, "0s", "of a stream that is made; 0s: for ever", {}, {}},
      {"nats.domain", Kind::text, "", "the JetStream domain, behind a leaf node", {}, {}},
      {"nats.api_prefix", Kind::text, "", "where another account's JetStream API is", {}, {}},
      {"nats.connect_timeout", Kind::duration, "2s", "how long to wait for a connection", {}, {}},
      {"nats.user", Kind::text, "", "who we are to the broker", {}, {}},
      {"nats.password_file", Kind::text, "", "the file with the password", {}, {}},
      {"nats.token_file", Kind::text, "", "the file with a token", {}, {}},
      {"nats.creds_file", Kind::text, "", "the file with a JWT and its seed", {}, {}},
      {"nats.nkey", Kind::text, "", "a public key", {}, {}},
      {"nats.nkey_seed_file", Kind::text, "", "the file with its seed", {}, {}},
      {"nats.tls", Kind::boolean, "false", "refuse a broker without TLS", {}, {}},
      {"nats.tls_ca_file",
       Kind::text,
       "",
       "what the broker's certificate is checked against",
       {},
       {}},
      {"nats.tls_certificate_file", Kind::text, "", "our certificate", {}, {}},
      {"nats.tls_key_file", Kind::text, "", "its key", {}, {}},
      {"nats.tls_host_name", Kind::text, "", "the name that each broker's certificate has", {}, {}},
      {"nats.allow_binary_wire",
       Kind::boolean,
       "false",
       "publish payloads of portable binary",
       {},
       {}},
      {"worker.id", Kind::text, "", "the worker's name; one is made if it is empty", {}, {}},
      {"worker.interval_ms", Kind::integer, "0", "a pause after each tick", {}, {0, 86'400'000}},
      {"worker.max_lag",
       Kind::duration,
       "60s",
       "a worker whose outbox lags longer isn't ready",
       {},
       {}},
      {"worker.window", Kind::integer, "0", "seconds that the dashboard adds up", {}, {0, 86'400}},
  };
}

bool is_boolean(std::string_view text) {
  return text == "true" || text == "false";
}

bool is_choice(std::string_view text, std::string_view choices) {
  while (!choices.empty()) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == text) return true;
    choices.remove_prefix(bar == std::string_view::npos ? choices.size() : bar + 1);
  }
  return false;
}

std::optional<double> parse_number(std::string_view text, Range range) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || !(value >= static_cast<double>(range.least)) ||
      !(value <= static_cast<double>(range.most))) {
    return std::nullopt;
  }
  return value;
}

/// What is wrong with the value; empty if nothing is.
std::string problem_with(const Setting& setting, const std::string& text) {
  switch (setting.kind) {
    case Kind::text:
      return text.find('\0') == std::string::npos ? "" : "has a NUL in it";
    case Kind::choice:
      return is_choice(text, setting.choices) ? "" : "is one of " + std::string{setting.choices};
    case Kind::boolean:
      return is_boolean(text) ? "" : "is true or false";
    case Kind::duration:
      return parse_duration(text) ? "" : "is " + std::string{a_duration};
    case Kind::number:
      return parse_number(text, setting.range) ? "" : "is a number from 0 to 1";
    case Kind::integer:
      break;
  }
  try {
    to_integer(text, "it", setting.range);
    return {};
  } catch (const Misuse&) {
    return "is a whole number from " + std::to_string(setting.range.least) + " to " +
           std::to_string(setting.range.most);
  }
}

const Setting* find_setting(std::string_view key) {
  const auto& settings = all_settings();
  const auto at = std::find_if(settings.begin(), settings.end(),
                               [&](const Setting& setting) { return setting.key == key; });
  return at == settings.end() ? nullptr : &*at;
}

}  // namespace

std::string Setting::variable() const {
  std::string name{"STELA_"};
  for (const char c : key) {
    name += c == '.' ? '_' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

const std::vector<Setting>& all_settings() {
  static const std::vector<Setting> settings = make_settings();
  return settings;
}

void Settings::set(std::string_view key, std::string text, std::string origin) {
  const Setting* setting = find_setting(key);
  if (setting == nullptr) {
    std::vector<std::string_view> keys;
    for (const Setting& known : all_settings()) keys.push_back(known.key);
    throw Misuse{origin + ": there is no setting '" + in_one_line(key) + "'" +
                 did_you_mean(key, keys)};
  }
  if (const std::string problem = problem_with(*setting, text); !problem.empty()) {
    throw Misuse{origin + ": " + std::string{key} + " " + problem + ", not '" + in_one_line(text) +
                 "'"};
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
  for (const Setting& setting : all_settings()) names.push_back(setting.variable());
  const std::vector<std::string_view> known{names.begin(), names.end()};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view pair{*entry};
    const std::string_view name = pair.substr(0, pair.find('='));
    if (name.substr(0, 6) != "STELA_") continue;
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      // Others may use such names too; one that looks like a typing error is refused.
      if (nearest(name, known, 2).empty()) continue;
      throw Misuse{std::string{"there is no setting "}.append(in_one_line(name)) +
                   did_you_mean(name, known)};
    } else if (at != known.begin()) {
      const auto index = static_cast<std::size_t>(at - known.begin()) - 1;
      set(all_settings()[index].key, std::string{pair.substr(name.size() + 1)}, std::string{name});
    }
  }
}

Settings Settings::load(std::span<const Option> options, const Arguments& arguments) {
  Settings settings;
  for (const Setting& setting : all_settings()) {
    settings.values_[std::string{setting.key}] = {setting.standard, "default"};
  }
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
    // A switch says the opposite of the default: --no-leasing, --ensure-stream.
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

std::int64_t Settings::integer(std::string_view key) const {
  return to_integer(text(key), key, find_setting(key)->range);
}

double Settings::number(std::string_view key) const {
  return parse_number(text(key), find_setting(key)->range).value_or(0);
}

bool Settings::boolean(std::string_view key) const {
  return text(key) == "true";
}

milliseconds Settings::duration(std::string_view key) const {
  return parse_duration(text(key)).value_or(milliseconds{0});
}

}  // namespace stela::tool

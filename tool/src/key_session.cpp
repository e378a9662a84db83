#include "key_session.hpp"

#include "cli/exit.hpp"

#include <stela/eventstore/detail/erasures.hpp>

namespace stela::tool {

KeySession::KeySession(Invocation& call, bool only_reads)
    : log_{call.settings().text("log") == "json"} {
  const Settings& settings = call.settings();
  const std::string& place = settings.text("keys.store");
  if (place.empty()) {
    if (call.arguments.has("--master") || call.arguments.has("--erasures")) {
      throw Misuse{"--master and --erasures go with --keys, which names the key store"};
    }
    return;
  }
  KeyOptions options{.erasures = settings.text("keys.erasures"),
                     .create = false,
                     .read_only = only_reads || call.access == Invocation::Access::only_reads,
                     .log = &log_};
  if (const std::string& master = settings.text("keys.master"); !master.empty()) {
    options.master = key_file(master);
  }
  keys_.emplace(open_keys(place, options));
}

namespace {

constexpr const char* how_to_name_keys =
    "Say --keys FILE, set STELA_KEYS_STORE, or write store = \"FILE\" into the table [keys] of "
    "stela.toml";

}  // namespace

Keys& KeySession::keys() {
  if (keys_) return *keys_;
  throw Misuse{std::string{"which keys? "} + how_to_name_keys};
}

void KeySession::require_for(Store& store) {
  if (keys_ || !has_personal_fields(store)) return;
  throw Misuse{
      std::string{"events here have sealed fields, which handlers would take for empty. "} +
      how_to_name_keys};
}

}  // namespace stela::tool

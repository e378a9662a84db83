#include "database/postgres/conninfo.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/framework/error.hpp>

#include <libpq-fe.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

namespace stela::postgres {
namespace {

struct FreeOptions {
  void operator()(PQconninfoOption* options) const noexcept { PQconninfoFree(options); }
};
using Words = std::unique_ptr<PQconninfoOption, FreeOptions>;

[[noreturn]] void refuse() {
  throw UsageError{
      "this isn't a connection string of PostgreSQL's; write postgresql://user@host/database or "
      "host=… user=… dbname=…, with parameters that libpq knows; in a URL write %XX for a "
      "colon or any of / @ ? # & % in a name or a password"};
}

/// An unescaped '/' or '@' in a password turns the rest of it into a host, a port or a database
/// name, which messages would show.
bool may_show_password(std::string_view conninfo) {
  const std::size_t scheme = conninfo.find("://");
  if (!conninfo.starts_with("postgres") || scheme == std::string_view::npos) return false;
  const std::string_view rest = conninfo.substr(scheme + 3);
  const std::size_t first = rest.find_first_of("/@");
  if (first == std::string_view::npos) return false;
  const std::string_view after = rest.substr(first + 1);
  return after.substr(0, after.find('?')).find('@') != std::string_view::npos;
}

bool is_port(std::string_view text) {
  return text.find_first_not_of("0123456789,") == std::string_view::npos;
}

std::string value_of(const Words& words, std::string_view name) {
  for (const PQconninfoOption* word = words.get(); word->keyword != nullptr; ++word) {
    if (name == word->keyword && word->val != nullptr) return word->val;
  }
  return {};
}

Words parse(const std::string& conninfo) {
  if (may_show_password(conninfo)) refuse();
  char* said = nullptr;
  Words words{PQconninfoParse(conninfo.c_str(), &said)};
  // libpq's message repeats the string, including a password.
  PQfreemem(said);
  if (words == nullptr || !is_port(value_of(words, "port"))) refuse();
  return words;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts{""};
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

std::string describe(const std::string& conninfo) {
  const Words words = parse(conninfo);
  const auto or_else = [&](std::string_view name, std::string_view other) {
    const std::string value = value_of(words, name);
    return value.empty() ? std::string{other} : value;
  };
  const std::string user = value_of(words, "user");
  const auto ports = split(value_of(words, "port"));
  std::string hosts;
  std::size_t i = 0;
  for (const std::string& host : split(or_else("host", or_else("hostaddr", "localhost")))) {
    const std::string port = ports.size() == 1 ? ports[0] : i < ports.size() ? ports[i] : "";
    hosts += (i++ > 0 ? "," : "") + host;
    if (!port.empty() && port != "5432") hosts += ':' + port;
  }
  return (user.empty() ? "" : user + '@') + hosts + '/' + or_else("dbname", user);
}

std::vector<Host> hosts_of(const std::string& conninfo) {
  const Words words = parse(conninfo);
  if (value_of(words, "target_session_attrs").starts_with("prefer")) return {};
  const auto names = split(value_of(words, "host"));
  const auto addresses = split(value_of(words, "hostaddr"));
  const auto ports = split(value_of(words, "port"));
  const std::size_t count = std::max(names.size(), addresses.size());
  const auto at = [](const std::vector<std::string>& list, std::size_t i) {
    return i < list.size() ? list[i] : std::string{};
  };
  // libpq refuses mismatched lists itself, with its own message.
  const bool fits = (names.size() == count || at(names, 0).empty()) &&
                    (addresses.size() == count || at(addresses, 0).empty()) &&
                    (ports.size() == count || ports.size() == 1);
  std::vector<Host> hosts;
  for (std::size_t i = 0; count > 1 && fits && i < count; ++i) {
    hosts.push_back({at(names, i), at(addresses, i), ports.size() == 1 ? ports[0] : ports[i]});
  }
  return hosts;
}

bool names_its_target(const std::string& conninfo) {
  return !value_of(parse(conninfo), "target_session_attrs").empty();
}

Keywords keywords_of(const ConnectionOptions& options, const Host* host, const char* which) {
  Keywords keywords;
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.connect_timeout).count();
  keywords.texts = {std::to_string(std::max<std::int64_t>(seconds, 2)),
                    std::to_string(options.reply_timeout.count()), options.conninfo};
  const auto set = [&](const char* keyword, const char* value) {
    keywords.names.push_back(keyword);
    keywords.values.push_back(value);
  };
  // The user's own keywords come after these, and win.
  set("connect_timeout", keywords.texts[0].c_str());
  set("tcp_user_timeout", keywords.texts[1].c_str());
  set("keepalives_idle", "10");
  set("keepalives_interval", "5");
  set("keepalives_count", "3");
  set("fallback_application_name", "stela");
  set("target_session_attrs", which);
  set("dbname", keywords.texts[2].c_str());
  set("client_encoding", "UTF8");
  if (host != nullptr) {
    set("host", host->name.c_str());
    set("hostaddr", host->address.c_str());
    set("port", host->port.c_str());
  }
  set(nullptr, nullptr);
  return keywords;
}

}  // namespace stela::postgres

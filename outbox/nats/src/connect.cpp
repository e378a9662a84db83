#include "connect.hpp"

#include "secret_file.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/uuid.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace stela::nats {
namespace {

/// Before 3.8, nats.c sends no signature whose first byte is 0, as one in 256 is. Each attempt has
/// a new nonce to sign.
constexpr int most_signatures = 4;

bool wants_tls(const Tls& tls) noexcept {
  return tls.required || !tls.ca_file.empty() || !tls.certificate_file.empty() ||
         !tls.host_name.empty();
}

void require_readable(std::string_view option, const std::string& path) {
  std::error_code ignored;
  if (path.empty()) return;
  if (std::filesystem::is_regular_file(path, ignored) && std::ifstream{path}.good()) return;
  throw UsageError{std::string{option} + ": the file " + path + " can't be read"};
}

void require_both(std::string_view one, const std::string& first, std::string_view other,
                  const std::string& second) {
  if (first.empty() == second.empty()) return;
  throw UsageError{std::string{one} + " and " + std::string{other} +
                   " belong together: give both or none"};
}

std::string read_secret(std::string_view option, const std::string& path) {
  return SecretFile{option, path}.read();
}

void require_secret(std::string_view option, const std::string& path) {
  if (!path.empty()) SecretFile{option, path};
}

/// 0 if it isn't a port.
int port_in(std::string_view digits) noexcept {
  int port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, port);
  return error == std::errc{} && stopped == end && port <= 65'535 ? std::max(port, 0) : 0;
}

/// Hides possible passwords and tokens: everything but a host's name, and anything after a colon
/// that isn't a port.
std::string hide_secrets(const std::string& url) {
  constexpr std::string_view of_hosts =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:/[]";
  const std::size_t colon = url.find(':');
  const bool has_scheme = colon != std::string::npos && url.compare(colon, 3, "://") == 0;
  const std::size_t begin = has_scheme ? colon + 3 : 0;
  if (url.find_first_not_of(of_hosts, begin) != std::string::npos) {
    return url.substr(0, begin) + "***";
  }
  const std::size_t secret = url.find(':', begin);
  if (secret == std::string::npos || port_in(std::string_view{url}.substr(secret + 1)) > 0) {
    return url;
  }
  return url.substr(0, secret + 1) + "***";
}

[[noreturn]] void refuse_url(const std::string& url, const std::string& why) {
  throw UsageError{"the URL of the NATS server is '" + hide_secrets(url) + "', " + why};
}

/// The part after the scheme.
std::string_view without_scheme(const std::string& url) {
  const std::string_view all{url};
  const std::size_t end = all.find("://");
  if (end == std::string_view::npos) return all;
  const std::string_view scheme = all.substr(0, end);
  if (scheme != "nats" && scheme != "tls") {
    refuse_url(url, "and its scheme isn't nats or tls: nats://HOST:PORT");
  }
  return all.substr(end + 3);
}

/// Brackets contain an IPv6 address, perhaps with a zone.
bool is_host(std::string_view text, bool in_brackets) noexcept {
  const std::string_view address = text.substr(0, in_brackets ? text.find('%') : text.size());
  return !address.empty() && std::all_of(address.begin(), address.end(), [&](char c) {
    const bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (in_brackets) return is_hex || c == ':' || c == '.';
    return is_hex || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' ||
           c == '_';
  });
}

Server parse_server(const std::string& url) {
  std::string_view rest = without_scheme(url);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  Server server{.url = url};
  const bool in_brackets = rest.starts_with('[');
  const std::size_t end = in_brackets ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (end == std::string_view::npos) refuse_url(url, "and a bracket isn't closed");
  server.host = rest.substr(in_brackets ? 1 : 0, end - (in_brackets ? 1 : 0));
  if (!is_host(server.host, in_brackets) || server.host.find_first_of(" /?#[]") < end) {
    refuse_url(url, "which names no host: nats://HOST:PORT");
  }
  rest.remove_prefix(end + (in_brackets ? 1 : 0));
  if (rest.empty()) return server;
  if (rest.front() != ':') refuse_url(url, "which isn't nats://HOST:PORT");
  server.port = port_in(rest.substr(1));
  if (server.port == 0) refuse_url(url, "and its port isn't a number from 1 to 65535");
  return server;
}

void apply(natsOptions* raw, const Credentials& credentials) {
  if (!credentials.user.empty()) {
    const std::string password = read_secret("password_file", credentials.password_file);
    check(natsOptions_SetUserInfo(raw, credentials.user.c_str(), password.c_str()),
          "taking the user");
  }
  if (!credentials.token_file.empty()) {
    const std::string token = read_secret("token_file", credentials.token_file);
    check(natsOptions_SetToken(raw, token.c_str()), "taking the token");
  }
  if (!credentials.creds_file.empty()) {
    check(natsOptions_SetUserCredentialsFromFiles(raw, credentials.creds_file.c_str(), nullptr),
          "taking the file with credentials");
  }
  if (!credentials.nkey.empty()) {
    check(natsOptions_SetNKeyFromSeed(raw, credentials.nkey.c_str(),
                                      credentials.nkey_seed_file.c_str()),
          "taking the nkey");
  }
}

void apply(natsOptions* raw, const Tls& tls, const std::vector<Server>& servers,
           const Server& server) {
  const bool in_url = std::any_of(servers.begin(), servers.end(), [](const Server& each) {
    return each.url.starts_with("tls://");
  });
  if (!wants_tls(tls) && !in_url) return;
  check(natsOptions_SetSecure(raw, true), "using TLS");
  if (!tls.ca_file.empty()) {
    check(natsOptions_LoadCATrustedCertificates(raw, tls.ca_file.c_str()),
          "reading the certificates in " + tls.ca_file);
  }
  if (!tls.certificate_file.empty()) {
    check(
        natsOptions_LoadCertificatesChain(raw, tls.certificate_file.c_str(), tls.key_file.c_str()),
        "reading the certificate " + tls.certificate_file + " and its key");
  }
  const std::string& name = tls.host_name.empty() ? server.host : tls.host_name;
  check(natsOptions_SetExpectedHostname(raw, name.c_str()), "taking the server's name");
}

/// Sets nats.c's options for one of the servers.
OptionsHandle prepare(const Target& target, const std::vector<Server>& servers,
                      const Server& server) {
  natsOptions* raw = nullptr;
  check(natsOptions_Create(&raw), "preparing to connect");
  OptionsHandle options{raw};
  check(natsOptions_SetURL(raw, server.url.c_str()), "taking the URL " + server.url);
  check(natsOptions_SetIgnoreDiscoveredServers(raw, true), "leaving other servers out");
  check(natsOptions_SetName(raw, "stela"), "naming the connection");
  check(natsOptions_SetCustomInboxPrefix(raw, make_inbox().c_str()), "naming its inboxes");
  check(natsOptions_SetTimeout(raw, target.timeout.count()), "setting the time-out");
  // By default nats.c would detect a half-open connection only after four minutes.
  check(natsOptions_SetPingInterval(raw, 10'000), "setting the ping interval");
  // A reconnected session would send messages that were given up long ago.
  check(natsOptions_SetAllowReconnect(raw, false), "refusing to reconnect");
  apply(raw, target.credentials);
  apply(raw, target.tls, servers, server);
  return options;
}

/// True if repeating the same attempt is pointless.
bool is_refusal(natsStatus status) noexcept {
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
    case NATS_SECURE_CONNECTION_WANTED:
    case NATS_SECURE_CONNECTION_REQUIRED:
    case NATS_SSL_ERROR:
      return true;
    default:
      return false;
  }
}

Attempted attempt(const Target& target, const std::vector<Server>& servers, const Server& server) {
  const bool signs = !target.credentials.creds_file.empty() || !target.credentials.nkey.empty();
  for (int left = signs ? most_signatures : 1;; --left) {
    Attempt attempt{.options = prepare(target, servers, server),
                    .host = server.host,
                    .port = server.port,
                    .timeout = target.timeout};
    if (target.listen) attempt.closure = target.listen(attempt.options.get());
    Attempted attempted = try_to_connect(std::move(attempt));
    if (attempted.status != NATS_CONNECTION_AUTH_FAILED || left == 1) return attempted;
  }
}

}  // namespace

std::vector<Server> parse_servers(const std::string& url) {
  std::vector<Server> servers;
  for (std::size_t begin = 0; begin <= url.size();) {
    const std::size_t end = std::min(url.find(',', begin), url.size());
    std::string one = url.substr(begin, end - begin);
    one.erase(0, one.find_first_not_of(' '));
    one.erase(one.find_last_not_of(' ') + 1);
    begin = end + 1;
    if (one.empty()) throw UsageError{"the URL of the NATS server is empty"};
    if (one.find('@') != std::string::npos) {
      throw UsageError{
          "a URL of a NATS server holds a user, a password or a token; leave it out there, and "
          "name files in the credentials"};
    }
    servers.push_back(parse_server(one));
  }
  return servers;
}

void check(const std::string& url, const Credentials& credentials, const Tls& tls) {
  parse_servers(url);
  require_both("user", credentials.user, "password_file", credentials.password_file);
  require_both("nkey", credentials.nkey, "nkey_seed_file", credentials.nkey_seed_file);
  require_both("tls.certificate_file", tls.certificate_file, "tls.key_file", tls.key_file);
  const int ways = int{!credentials.user.empty()} + int{!credentials.token_file.empty()} +
                   int{!credentials.creds_file.empty()} + int{!credentials.nkey.empty()};
  if (ways > 1) {
    throw UsageError{"credentials: give one of user, token_file, creds_file and nkey, not " +
                     std::to_string(ways)};
  }
  require_secret("password_file", credentials.password_file);
  require_secret("token_file", credentials.token_file);
  require_secret("creds_file", credentials.creds_file);
  require_secret("nkey_seed_file", credentials.nkey_seed_file);
  require_readable("tls.ca_file", tls.ca_file);
  require_readable("tls.certificate_file", tls.certificate_file);
  require_secret("tls.key_file", tls.key_file);
}

Connection connect(const Target& target) {
  const std::vector<Server> servers = parse_servers(target.url);
  std::string problems;
  bool is_refused = false;
  // Each process starts with another server, as clients of a cluster should.
  const std::size_t first = make_uuid().bytes().back() % servers.size();
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (target.is_unwanted && target.is_unwanted())
      throw BrokerFailed{"the connection is no longer needed"};
    const Server& server = servers[(first + i) % servers.size()];
    Attempted attempted = attempt(target, servers, server);
    if (attempted.status == NATS_OK) return Connection{std::move(attempted.connection)};
    is_refused = is_refused || is_refusal(attempted.status);
    problems.append(problems.empty() ? "" : "; ").append("connecting to ").append(server.url);
    problems.append(": ").append(natsStatus_GetText(attempted.status));
    if (!attempted.detail.empty()) problems.append(", ").append(attempted.detail);
  }
  if (is_refused) throw Misconfigured{problems};
  throw BrokerFailed{problems};
}

std::string make_inbox() {
  return "_INBOX." + make_uuid().to_string();
}

ContextHandle use_jetstream(natsConnection* connection, const std::string& api) {
  jsOptions settings;
  jsOptions_Init(&settings);
  settings.Prefix = api.c_str();
  jsCtx* context = nullptr;
  check(natsConnection_JetStream(&context, connection, &settings), "using JetStream");
  return ContextHandle{context};
}

StreamInfoHandle take_stream_info(jsStreamInfo* raw, const std::string& doing) {
  StreamInfoHandle info{raw};
  if (info->Config == nullptr)
    throw BrokerFailed{doing + " failed: the answer has no configuration"};
  return info;
}

std::string in_words(natsStatus status, jsErrCode code) {
  std::string text = natsStatus_GetText(status);
  if (code != 0) text += " (JetStream error " + std::to_string(static_cast<int>(code)) + ')';
  return text;
}

}  // namespace stela::nats

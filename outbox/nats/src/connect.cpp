#include "connect.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <string_view>

namespace stela::nats {
namespace {

constexpr std::size_t largest_secret = 64 * 1024;

bool wants_tls(const Tls& tls) noexcept {
  return tls.required || !tls.ca_file.empty() || !tls.certificate_file.empty() ||
         !tls.host_name.empty();
}

void require_readable(std::string_view option, const std::string& path) {
  if (path.empty() || std::ifstream{path}.good()) return;
  throw UsageError{std::string{option} + ": the file " + path + " can't be read"};
}

void require_both(std::string_view one, const std::string& first, std::string_view other,
                  const std::string& second) {
  if (first.empty() == second.empty()) return;
  throw UsageError{std::string{one} + " and " + std::string{other} +
                   " belong together: give both or none"};
}

/// The whole file without the line break at its end.
std::string read_secret(std::string_view option, const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string secret(largest_secret, '\0');
  file.read(secret.data(), static_cast<std::streamsize>(secret.size()));
  secret.resize(static_cast<std::size_t>(file.gcount()));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty() || secret.find('\0') != std::string::npos) {
    throw UsageError{std::string{option} + ": the file " + path + " holds no secret"};
  }
  return secret;
}

std::string host_of(std::string_view url) {
  if (const auto scheme = url.find("://"); scheme != std::string_view::npos) {
    url.remove_prefix(scheme + 3);
  }
  if (url.starts_with('[')) return std::string{url.substr(1, url.find(']') - 1)};
  return std::string{url.substr(0, url.find_first_of(":/"))};
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

/// nats.c compares the certificate's name only with one that it is told.
std::string expected_host(const Tls& tls, const std::vector<std::string>& urls) {
  if (!tls.host_name.empty()) return tls.host_name;
  std::set<std::string> hosts;
  for (const std::string& url : urls) hosts.insert(host_of(url));
  if (hosts.size() == 1) return *hosts.begin();
  throw UsageError{
      "several servers with TLS need tls.host_name: the one name that all of their certificates "
      "have"};
}

void apply(natsOptions* raw, const Tls& tls, const std::vector<std::string>& urls) {
  const bool in_url = std::any_of(urls.begin(), urls.end(),
                                  [](const std::string& url) { return url.starts_with("tls://"); });
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
  check(natsOptions_SetExpectedHostname(raw, expected_host(tls, urls).c_str()),
        "taking the server's name");
}

}  // namespace

std::vector<std::string> split_urls(const std::string& url) {
  std::vector<std::string> urls;
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
    urls.push_back(std::move(one));
  }
  return urls;
}

void check(const std::string& url, const Credentials& credentials, const Tls& tls) {
  const auto urls = split_urls(url);
  require_both("user", credentials.user, "password_file", credentials.password_file);
  require_both("nkey", credentials.nkey, "nkey_seed_file", credentials.nkey_seed_file);
  require_both("tls.certificate_file", tls.certificate_file, "tls.key_file", tls.key_file);
  const int ways = int{!credentials.user.empty()} + int{!credentials.token_file.empty()} +
                   int{!credentials.creds_file.empty()} + int{!credentials.nkey.empty()};
  if (ways > 1) {
    throw UsageError{"credentials: give one of user, token_file, creds_file and nkey, not " +
                     std::to_string(ways)};
  }
  require_readable("password_file", credentials.password_file);
  require_readable("token_file", credentials.token_file);
  require_readable("creds_file", credentials.creds_file);
  require_readable("nkey_seed_file", credentials.nkey_seed_file);
  require_readable("tls.ca_file", tls.ca_file);
  require_readable("tls.certificate_file", tls.certificate_file);
  require_readable("tls.key_file", tls.key_file);
  if (wants_tls(tls)) expected_host(tls, urls);
}

OptionsHandle prepare(const std::string& url, const Credentials& credentials, const Tls& tls,
                      std::chrono::milliseconds connect_timeout) {
  const std::vector<std::string> urls = split_urls(url);
  std::vector<const char*> servers;
  for (const std::string& one : urls) servers.push_back(one.c_str());
  natsOptions* raw = nullptr;
  check(natsOptions_Create(&raw), "preparing to connect");
  OptionsHandle options{raw};
  check(natsOptions_SetServers(raw, servers.data(), static_cast<int>(servers.size())),
        "taking the URL " + url);
  check(natsOptions_SetName(raw, "stela"), "naming the connection");
  check(natsOptions_SetTimeout(raw, connect_timeout.count()), "setting the time-out");
  // nats.c would notice a connection that is half open after four minutes.
  check(natsOptions_SetPingInterval(raw, 10'000), "setting the ping interval");
  apply(raw, credentials);
  apply(raw, tls, urls);
  return options;
}

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

}  // namespace stela::nats

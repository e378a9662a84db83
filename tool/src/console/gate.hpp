// Checks that a request has the right host, origin and secrets.
#pragma once

#include "console/people.hpp"
#include "console/sessions.hpp"
#include "http/message.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

/// The sender of a request, with its grants.
struct Asker {
  /// Empty for the user who started the console.
  std::string name = {};
  Grants grants = {};
};

/// Denies every request that it has no reason to allow. Threads: any.
class Gate {
 public:
  struct Options {
    /// "/" or "/stela/".
    std::string base_path = "/";
    /// The token of programs. Empty: none may ask.
    std::string machine_token = {};
    std::string people_file = {};
    /// The field in which a proxy names the person, in lower case. Empty: there is no proxy.
    std::string proxy_field = {};
    /// The secret that identifies the proxy. Empty: only the proxy can reach this address.
    std::string proxy_secret = {};
    /// Host names that it answers to, beside those of loopback: "console.example.org".
    std::vector<std::string> hosts = {};
    bool has_links = true;
    /// The user who started the console and has its links.
    std::string user = {};
  };

  explicit Gate(Options options);

  /// Refuses a request for its host, or for pretending to come from the proxy. Empty if the request
  /// may proceed. It stops pages of another name that lead to this address, for example by DNS
  /// rebinding.
  std::optional<HttpResponse> refuse_way(const HttpRequest& request) const;
  /// The sender of a request for data. Empty if it is refused; `refusal` then has the answer.
  std::optional<Asker> admit(const HttpRequest& request, HttpResponse& refusal);
  /// Opens a session by a link's secret, a person's token or the name from the proxy, and returns
  /// its token. The token is given only once, because a cookie goes to every port of this host. A
  /// client that has both secrets gets only the facts, members of an object: `"version":"1"`.
  HttpResponse session(const HttpRequest& request,
                       const std::function<std::string(const Asker&)>& facts);

  std::string new_link() { return sessions_.new_link(); }

 private:
  bool answers_to(const std::string& host, std::uint16_t port) const;
  std::optional<HttpResponse> refuse_origin(const HttpRequest& request) const;
  HttpResponse no_session(std::string_view why) const;
  bool is_proxied(const HttpRequest& request) const;
  std::optional<Asker> asker_of(const Sessions::Holder& holder);
  std::optional<Asker> by_token(const HttpRequest& request);
  std::optional<Asker> by_session(const HttpRequest& request);
  std::optional<Sessions::Holder> newcomer(const HttpRequest& request, std::string& why);
  HttpResponse open_session(const HttpRequest& request,
                            const std::function<std::string(const Asker&)>& facts);

  /// Browsers share cookies between ports, so each console on a host names its own differently.
  std::string cookie_of(const HttpRequest& request) const;

  const Options options_;
  const std::string instance_ = new_secret().substr(0, 8);
  Sessions sessions_;
  People people_;
};

}  // namespace stela::tool

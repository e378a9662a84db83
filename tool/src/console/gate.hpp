// What a request must have to be answered: the right host, origin and secrets.
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

/// Whoever asks, and what they may.
struct Asker {
  /// Empty: whoever started the console.
  std::string name = {};
  Grants grants = {};
};

/// Denies unless it has a reason not to. Threads: any.
class Gate {
 public:
  struct Options {
    /// "/" or "/stela/".
    std::string base_path = "/";
    /// Of programs that ask; empty: there are none.
    std::string machine_token = {};
    std::string people_file = {};
    /// The field with a person's name that a proxy adds, in lower case; empty: there is no proxy.
    std::string proxy_field = {};
    /// What shows that it was the proxy; empty: nobody else can reach this address.
    std::string proxy_secret = {};
    /// It answers to these names, beside those of loopback: "console.example.org".
    std::vector<std::string> hosts = {};
    bool has_links = true;
    /// Whoever started it, who has the links.
    std::string user = {};
  };

  explicit Gate(Options options);

  /// What refuses a request by its host, or as it says without right that it comes from the proxy;
  /// nothing if it may go on. A page of another name that leads to this address, as by DNS
  /// rebinding, ends here.
  std::optional<HttpResponse> refuse_way(const HttpRequest& request) const;
  /// Who asks for data. What refuses it otherwise is in `refusal`.
  std::optional<Asker> admit(const HttpRequest& request, HttpResponse& refusal);
  /// Opens a session by a link's secret, a person's token or for whom the proxy names, and gives
  /// its token, which nobody is given again: a cookie goes to every port of this host. To whoever
  /// has both secrets it gives the facts alone, members of an object: `"version":"1"`.
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

  /// Cookies know no ports: another console on this host has another name for its own.
  std::string cookie_of(const HttpRequest& request) const;

  const Options options_;
  const std::string instance_ = new_secret().substr(0, 8);
  Sessions sessions_;
  People people_;
};

}  // namespace stela::tool

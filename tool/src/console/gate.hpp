// What a request must have to be answered: the right host, origin and secrets.
#pragma once

#include "console/sessions.hpp"
#include "http/message.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

/// Denies unless it has a reason not to. Threads: any.
class Gate {
 public:
  struct Options {
    /// "/" or "/stela/".
    std::string base_path = "/";
    /// Of programs that ask; empty: there are none.
    std::string machine_token = {};
  };

  explicit Gate(Options options);

  /// What refuses a request by its host; nothing if it may go on. A page of another name that leads
  /// to this address, as by DNS rebinding, ends here.
  std::optional<HttpResponse> refuse_host(const HttpRequest& request) const;
  /// What refuses a request for data; nothing if it may be answered.
  std::optional<HttpResponse> refuse(const HttpRequest& request);
  /// Opens a session by a link's secret, and gives its token, which nobody is given again: a cookie
  /// goes to every port of this host. To whoever has both secrets it gives `facts` alone, members
  /// of an object: `"version":"1"`.
  HttpResponse session(const HttpRequest& request, const std::string& facts);

  std::string new_link() { return sessions_.new_link(); }

 private:
  std::optional<HttpResponse> refuse_origin(const HttpRequest& request) const;
  std::optional<std::string> token_of(const HttpRequest& request);
  HttpResponse open_session(const HttpRequest& request, const std::string& facts);

  /// Cookies know no ports: another console on this host has another name for its own.
  std::string cookie_of(const HttpRequest& request) const;

  const Options options_;
  const std::string instance_ = new_secret().substr(0, 8);
  Sessions sessions_;
};

}  // namespace stela::tool

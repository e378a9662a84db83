// A small HTTP server, for a worker's pages and the console.
#pragma once

#include "http/message.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace stela::tool {

/// The address to listen on.
struct HttpAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  /// Instead of both: the path of a Unix socket. Its permissions decide who may connect.
  std::string socket_file = {};
  unsigned socket_mode = 0600;
};

/// "9464" (on loopback), "0.0.0.0:9464", "[::1]:9464". Misuse, naming `what`, for any other text.
HttpAddress parse_address(std::string_view text, std::string_view what);

/// The functions that answer requests. An exception from one becomes a 500.
struct HttpPages {
  /// Empty for pages that may have to wait.
  std::function<std::optional<HttpResponse>(const HttpRequest& request)> at_once;
  std::function<HttpResponse(const HttpRequest& request)> in_time;
  /// Pages of one lane don't wait for those of another. Unset: all use the first lane.
  std::function<std::size_t(const HttpRequest& request)> lane = {};
};

struct HttpLimits {
  int connections = 64;
  std::size_t lanes = 1;
  /// How many requests of a lane may wait for a page. Further ones are told to retry.
  int waiting = 16;
  /// How many pages of a lane are made at a time.
  int makers = 1;
  /// The longest body of a POST. 0: only GET and HEAD are answered.
  std::size_t body = 0;
  /// How many requests a connection may make.
  int requests = 1;
};

/// Answers HTTP/1.1 requests. Bodies need a Content-Length. Slow clients are disconnected; if there
/// are too many, so is the oldest that hasn't sent a request. Malformed requests get 400, too long
/// heads 431. While a slow page, such as one from a hanging database, makes others wait, pages that
/// are answered at once don't wait. Threads: one for the clients, and the makers.
class HttpServer {
 public:
  /// Exit if it can't listen there. Replaces the socket file of a dead server, and removes its own
  /// at the end.
  HttpServer(const HttpAddress& address, HttpPages pages, const HttpLimits& limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:9464", or "unix:/run/stela.sock".
  std::string url() const;
  std::uint16_t port() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela::tool

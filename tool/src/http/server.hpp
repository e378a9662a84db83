// A small HTTP server: the pages of a worker, and the console.
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

/// Where it listens.
struct HttpAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
  /// In place of both: a socket that is a file, for those whom its rights let connect.
  std::string socket_file = {};
  unsigned socket_mode = 0600;
};

/// "9464" (on loopback), "0.0.0.0:9464", "[::1]:9464". Misuse, naming `what`, if it is none of
/// them.
HttpAddress parse_address(std::string_view text, std::string_view what);

/// Who answers. What they throw is answered as 500.
struct HttpPages {
  /// Nothing for pages that may have to wait.
  std::function<std::optional<HttpResponse>(const HttpRequest& request)> at_once;
  std::function<HttpResponse(const HttpRequest& request)> in_time;
  /// Pages of one lane don't wait for those of another. Unset: all are of the first.
  std::function<std::size_t(const HttpRequest& request)> lane = {};
};

struct HttpLimits {
  int connections = 64;
  std::size_t lanes = 1;
  /// Of a lane so many requests wait for a page; others are told to come again.
  int waiting = 16;
  /// Of a lane so many pages are made at a time.
  int makers = 1;
  /// The longest body of a POST; 0: it answers GET and HEAD only.
  std::size_t body = 0;
  /// After so many a connection ends.
  int requests = 1;
};

/// Answers requests of HTTP/1.1. Bodies have a Content-Length. Slow clients are cut off; if there
/// are too many, the oldest that hasn't asked is at once. What makes no sense is answered with 400,
/// a head that is too long with 431. While a page makes others wait, as one of a database that
/// hangs, those that are answered at once don't. Threads: has one for the clients, and the makers.
class HttpServer {
 public:
  /// Exit if it can't listen there. The file of a socket whose server has died is replaced, and its
  /// own is removed at the end.
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

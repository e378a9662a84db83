// A small HTTP server for a few pages that are asked for now and then.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

/// Where it listens.
struct HttpAddress {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;
};

/// "9464" (on loopback), "0.0.0.0:9464", "[::1]:9464". Misuse if it is none of them.
HttpAddress parse_address(std::string_view text);

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
};

HttpResponse metrics_page(std::string text);
/// 200, or 503 with the reasons.
HttpResponse readiness(const std::vector<std::string>& why_not);
/// /healthz, or that there is no such page. Nothing for /metrics and /readyz.
std::optional<HttpResponse> other_page(std::string_view path);

/// Who answers, by the path. What they throw is answered as 500.
struct HttpPages {
  /// Nothing for pages that may have to wait.
  std::function<std::optional<HttpResponse>(std::string_view path)> at_once;
  std::function<HttpResponse(std::string_view path)> in_time;
};

/// Answers GET and HEAD, one request a connection. Slow clients are cut off; if there are too many,
/// the oldest that hasn't asked is at once. While a page makes others wait, as one of a database
/// that hangs, those that are answered at once don't.
/// Threads: has two of its own, one for each kind of page.
class HttpServer {
 public:
  /// Exit if it can't listen there.
  HttpServer(const HttpAddress& address, HttpPages pages);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:9464".
  std::string url() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stela::tool

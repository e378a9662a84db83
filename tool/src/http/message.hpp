// What is asked of the HTTP server, and what it answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::tool {

struct HttpRequest {
  std::string method = {};
  /// As it was sent, without the query.
  std::string path = {};
  /// Without its question mark.
  std::string query = {};
  /// Their names in lower case, as often as they were sent.
  std::vector<std::pair<std::string, std::string>> fields = {};
  std::string body = {};
  /// The server's, to which it came.
  std::uint16_t port = 0;

  bool has(std::string_view field) const noexcept;
  /// Nothing if there is none, or more than one.
  std::optional<std::string> field(std::string_view name) const;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  /// More than the server writes by itself: "Set-Cookie".
  std::vector<std::pair<std::string, std::string>> fields = {};
};

/// "a%20b" is "a b"; nothing if a percent sign begins no byte, or one stands for a zero.
std::optional<std::string> decode_percent(std::string_view text);

/// "a=1&b=x%20y", in its order; nothing if a part of it can't be decoded.
std::optional<std::vector<std::pair<std::string, std::string>>> decode_query(std::string_view text);

}  // namespace stela::tool

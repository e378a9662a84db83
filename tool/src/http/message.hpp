// Requests to the HTTP server, and its responses.
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
  /// Names in lower case. A repeated field is repeated here.
  std::vector<std::pair<std::string, std::string>> fields = {};
  std::string body = {};
  /// The port of the server that received it.
  std::uint16_t port = 0;

  bool has(std::string_view field) const noexcept;
  /// Empty if there is none, or more than one.
  std::optional<std::string> field(std::string_view name) const;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  /// Beside those that the server writes itself: "Set-Cookie".
  std::vector<std::pair<std::string, std::string>> fields = {};
};

/// "a%20b" is "a b". Empty for an invalid percent escape or a zero byte.
std::optional<std::string> decode_percent(std::string_view text);

/// "a=1&b=x%20y", in order. Empty if a part can't be decoded.
std::optional<std::vector<std::pair<std::string, std::string>>> decode_query(std::string_view text);

}  // namespace stela::tool

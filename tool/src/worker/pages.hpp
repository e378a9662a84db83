// The monitoring pages of a working process.
#pragma once

#include "http/message.hpp"

#include <optional>
#include <string>
#include <vector>

namespace stela::tool {

HttpResponse metrics_page(std::string text);
/// 200, or 503 with the reasons.
HttpResponse readiness(const std::vector<std::string>& why_not);
/// Answers /healthz, and 404 for unknown pages. Empty for /metrics and /readyz.
std::optional<HttpResponse> other_page(const HttpRequest& request);

}  // namespace stela::tool

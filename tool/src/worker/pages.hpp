// The pages that a process which works has for monitoring.
#pragma once

#include "http/message.hpp"

#include <optional>
#include <string>
#include <vector>

namespace stela::tool {

HttpResponse metrics_page(std::string text);
/// 200, or 503 with the reasons.
HttpResponse readiness(const std::vector<std::string>& why_not);
/// /healthz, or that there is no such page. Nothing for /metrics and /readyz.
std::optional<HttpResponse> other_page(const HttpRequest& request);

}  // namespace stela::tool

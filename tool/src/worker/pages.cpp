#include "worker/pages.hpp"

namespace stela::tool {

HttpResponse metrics_page(std::string text) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = std::move(text)};
}

HttpResponse readiness(const std::vector<std::string>& why_not) {
  if (why_not.empty()) return {.body = "ready\n"};
  HttpResponse response{.status = 503};
  for (const std::string& reason : why_not) response.body += reason + "\n";
  return response;
}

std::optional<HttpResponse> other_page(const HttpRequest& request) {
  if (request.path == "/metrics" || request.path == "/readyz") return std::nullopt;
  if (request.path == "/healthz") return HttpResponse{.body = "ok\n"};
  return HttpResponse{.status = 404, .body = "there are /metrics, /healthz and /readyz\n"};
}

}  // namespace stela::tool

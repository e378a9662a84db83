#include "console/gate.hpp"

#include "console/problem.hpp"

#include <stela/framework/codec/json_reader.hpp>

#include <algorithm>
#include <exception>

namespace stela::tool {
namespace {

HttpResponse no_session(std::string_view why) {
  return problem(401, "No session", why);
}

/// The cookie of this name in "a=1; b=2"; nothing if there is none, or more than one.
std::optional<std::string> cookie_in(std::string_view text, std::string_view name) {
  std::optional<std::string> found;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.size() <= name.size() || !one.starts_with(name) || one[name.size()] != '=') continue;
    if (found) return {};
    found = one.substr(name.size() + 1);
  }
  return found;
}

}  // namespace

Gate::Gate(Options options) : options_{std::move(options)} {}

std::string Gate::cookie_of(const HttpRequest& request) const {
  return "stela_" + std::to_string(request.port) + "_" + instance_;
}

std::optional<HttpResponse> Gate::refuse_host(const HttpRequest& request) const {
  const auto host = request.field("host");
  const std::string port = ":" + std::to_string(request.port);
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (host && *host == std::string{name} + port) return {};
  }
  return problem(421, "Another host",
                 "this console answers to 127.0.0.1" + port + " and localhost" + port +
                     ", and to no other name");
}

std::optional<HttpResponse> Gate::refuse_origin(const HttpRequest& request) const {
  const bool is_foreign =
      (request.has("sec-fetch-site") && request.field("sec-fetch-site") != "same-origin") ||
      (request.has("origin") &&
       request.field("origin") != "http://" + request.field("host").value_or(""));
  if (!is_foreign) return {};
  return problem(403, "Another origin", "pages of other origins may not ask this console");
}

std::optional<std::string> Gate::token_of(const HttpRequest& request) {
  const auto cookies = request.field("cookie");
  const auto id = cookies ? cookie_in(*cookies, cookie_of(request)) : std::nullopt;
  return id ? sessions_.token_of(*id) : std::nullopt;
}

std::optional<HttpResponse> Gate::refuse(const HttpRequest& request) {
  if (auto refusal = refuse_origin(request)) return refusal;
  if (request.has("authorization")) {
    const std::string wanted = "Bearer " + options_.machine_token;
    const auto given = request.field("authorization");
    const bool is_right =
        !options_.machine_token.empty() && given && is_same_secret(*given, wanted);
    return is_right ? std::nullopt : std::optional{no_session("this token isn't the console's")};
  }
  const auto token = token_of(request);
  if (!token) return no_session("there is no session, or it has ended");
  const auto given = request.field("stela-token");
  if (given && is_same_secret(*given, *token)) return {};
  return no_session("the header Stela-Token isn't the session's");
}

HttpResponse Gate::session(const HttpRequest& request, const std::string& facts) {
  if (request.method == "POST") {
    if (auto refusal = refuse_origin(request)) return *std::move(refusal);
    return open_session(request, facts);
  }
  if (auto refusal = refuse(request)) return *std::move(refusal);
  return json_answer("{" + facts + "}");
}

HttpResponse Gate::open_session(const HttpRequest& request, const std::string& facts) {
  if (!is_json(request)) {
    return problem(415, "Not JSON", "the Content-Type is application/json");
  }
  std::string link;
  try {
    json::Reader reader{request.body};
    reader.open_object();
    if (reader.select("key")) link = reader.get_string();
    reader.close();
    reader.finish();
  } catch (const std::exception&) {
    return problem(400, "Not understood", "the body is {\"key\": the link's secret}");
  }
  const auto session = sessions_.open(link);
  if (!session) return no_session("this link was used, is over five minutes old, or isn't ours");
  HttpResponse response = json_answer("{\"token\":\"" + session->token + "\"," + facts + "}");
  response.fields.emplace_back("Set-Cookie", cookie_of(request) + "=" + session->id +
                                                 "; HttpOnly; Path=" + options_.base_path +
                                                 "; SameSite=Strict");
  return response;
}

}  // namespace stela::tool

#include "console/gate.hpp"

#include "console/problem.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>

#include <algorithm>
#include <exception>

namespace stela::tool {
namespace {

constexpr std::string_view secret_field = "stela-proxy-secret";
constexpr std::string_view by_proxy = "proxy";

/// {"key": "…"} from a link, or {"token": "…"} from a person.
struct Opening {
  std::string key = {};
  std::string token = {};
};

std::optional<Opening> opening_in(const std::string& body) try {
  Opening opening;
  json::Reader reader{body};
  reader.open_object();
  if (reader.select("key")) opening.key = reader.get_string();
  if (reader.select("token")) opening.token = reader.get_string();
  reader.close();
  reader.finish();
  return opening;
} catch (const std::exception&) {
  return {};
}

bool is_among(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// The cookie with this name in "a=1; b=2". Empty if there is none, or more than one.
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

Gate::Gate(Options options)
    : options_{std::move(options)},
      people_{options_.people_file,
              {options_.has_links ? options_.user : std::string{}, options_.machine_token}} {}

std::string Gate::cookie_of(const HttpRequest& request) const {
  return "stela_" + std::to_string(request.port) + "_" + instance_;
}

bool Gate::answers_to(const std::string& host, std::uint16_t port) const {
  if (is_among(options_.hosts, host)) return true;
  // A Unix socket has no port, and no page can lead to it.
  if (port == 0) return host == "localhost";
  const std::string end = ":" + std::to_string(port);
  return host == "127.0.0.1" + end || host == "localhost" + end || host == "[::1]" + end;
}

std::optional<HttpResponse> Gate::refuse_way(const HttpRequest& request) const {
  const auto host = request.field("host");
  if (!host || !answers_to(*host, request.port)) {
    const std::string port = ":" + std::to_string(request.port);
    return problem(421, "Another host",
                   "this console answers to 127.0.0.1" + port + " and localhost" + port +
                       ", and to other names only with --host");
  }
  if (options_.proxy_field.empty()) return {};
  const bool has_secret = request.has(secret_field);
  const bool is_right =
      options_.proxy_secret.empty() ||
      is_same_secret(request.field(secret_field).value_or(""), options_.proxy_secret);
  const bool names_one = !is_proxied(request) || request.field(options_.proxy_field);
  if ((!has_secret && !is_proxied(request)) || (is_right && names_one)) return {};
  return problem(403, "Not the proxy",
                 "a person's name comes from the proxy alone, once, and with the proxy's secret");
}

std::optional<HttpResponse> Gate::refuse_origin(const HttpRequest& request) const {
  const std::string host = request.field("host").value_or("");
  const auto origin = request.field("origin");
  const bool is_own =
      origin == "http://" + host || (is_among(options_.hosts, host) && origin == "https://" + host);
  const bool is_foreign =
      (request.has("sec-fetch-site") && request.field("sec-fetch-site") != "same-origin") ||
      (request.has("origin") && !is_own);
  if (!is_foreign) return {};
  return problem(403, "Another origin", "pages of other origins may not ask this console");
}

HttpResponse Gate::no_session(std::string_view why) const {
  std::string ways = options_.has_links ? "\"link\"" : "";
  if (people_.is_used()) ways += ways.empty() ? "\"token\"" : ",\"token\"";
  if (!options_.proxy_field.empty()) ways += ways.empty() ? "\"proxy\"" : ",\"proxy\"";
  return problem(401, "No session", why, "\"ways\":[" + ways + "]");
}

bool Gate::is_proxied(const HttpRequest& request) const {
  return !options_.proxy_field.empty() && request.has(options_.proxy_field);
}

std::optional<Asker> Gate::asker_of(const Sessions::Holder& holder) {
  if (holder.name.empty()) return Asker{.grants = Grants::all()};
  const auto person = people_.find(holder.name);
  if (!person || (holder.proof != by_proxy && holder.proof != person->token_hash)) return {};
  return Asker{holder.name, person->grants};
}

std::optional<Asker> Gate::by_token(const HttpRequest& request) {
  constexpr std::string_view bearer = "Bearer ";
  const auto given = request.field("authorization");
  if (!given || !given->starts_with(bearer)) return {};
  const std::string token = given->substr(bearer.size());
  if (!options_.machine_token.empty() && is_same_secret(token, options_.machine_token)) {
    return Asker{"a program", {.view = true, .payloads = Payloads::full}};
  }
  const auto name = people_.name_by_token(token);
  const auto person = name ? people_.find(*name) : std::nullopt;
  return person ? std::optional{Asker{*name, person->grants}} : std::nullopt;
}

std::optional<Asker> Gate::by_session(const HttpRequest& request) {
  const auto cookies = request.field("cookie");
  const auto id = cookies ? cookie_in(*cookies, cookie_of(request)) : std::nullopt;
  Sessions::Holder holder;
  const auto token = id ? sessions_.token_of(*id, Sessions::Clock::now(), &holder) : std::nullopt;
  const auto given = request.field("stela-token");
  if (!token || !given || !is_same_secret(*given, *token)) return {};
  const bool is_of_proxy = holder.proof == by_proxy;
  const bool is_theirs = is_of_proxy == is_proxied(request) &&
                         (!is_of_proxy || holder.name == request.field(options_.proxy_field));
  return is_theirs ? asker_of(holder) : std::nullopt;
}

std::optional<Asker> Gate::admit(const HttpRequest& request, HttpResponse& refusal) {
  if (auto foreign = refuse_origin(request)) {
    refusal = *std::move(foreign);
    return {};
  }
  const bool has_token = request.has("authorization");
  if (has_token && is_proxied(request)) {
    refusal = no_session("the proxy names a person, and passes on a token of another: not both");
    return {};
  }
  auto asker = has_token ? by_token(request) : by_session(request);
  if (!asker) {
    refusal = no_session(has_token ? "this token isn't the console's"
                                   : "there is no session, it has ended, or the header "
                                     "Stela-Token isn't its own");
  }
  return asker;
}

HttpResponse Gate::session(const HttpRequest& request,
                           const std::function<std::string(const Asker&)>& facts) {
  HttpResponse refusal;
  if (request.method == "POST") {
    if (auto foreign = refuse_origin(request)) return *std::move(foreign);
    return open_session(request, facts);
  }
  const auto asker = admit(request, refusal);
  return asker ? json_answer("{" + facts(*asker) + "}") : refusal;
}

std::optional<Sessions::Holder> Gate::newcomer(const HttpRequest& request, std::string& why) {
  if (is_proxied(request)) {
    why = "whom the proxy names has no grants here";
    const std::string name = request.field(options_.proxy_field).value_or("");
    if (!people_.find(name)) return {};
    return Sessions::Holder{name, std::string{by_proxy}};
  }
  why = "this token is nobody's";
  const auto name = people_.name_by_token(opening_in(request.body).value_or(Opening{}).token);
  const auto person = name ? people_.find(*name) : std::nullopt;
  if (!person) return {};
  return Sessions::Holder{*name, person->token_hash};
}

HttpResponse Gate::open_session(const HttpRequest& request,
                                const std::function<std::string(const Asker&)>& facts) {
  if (!is_json(request)) {
    return problem(415, "Not JSON", "the Content-Type is application/json");
  }
  const auto opening = opening_in(request.body);
  if (!opening) {
    return problem(400, "Not understood", "the body is {\"key\": the link's secret}");
  }
  std::optional<Sessions::Session> session;
  Sessions::Holder holder;
  std::string why = "this link was used, is over five minutes old, or isn't ours";
  if (is_proxied(request) || !opening->token.empty()) {
    if (auto found = newcomer(request, why)) {
      holder = *std::move(found);
      session = sessions_.open_for(holder);
    }
  } else if (options_.has_links) {
    session = sessions_.open(opening->key);
  }
  const auto asker = session ? asker_of(holder) : std::nullopt;
  if (!asker) return no_session(why);
  HttpResponse response =
      json_answer("{\"token\":\"" + session->token + "\"," + facts(*asker) + "}");
  const bool is_by_tls = request.field("origin").value_or("").starts_with("https:");
  response.fields.emplace_back(
      "Set-Cookie", cookie_of(request) + "=" + session->id + "; HttpOnly; Path=" +
                        options_.base_path + "; SameSite=Strict" + (is_by_tls ? "; Secure" : ""));
  return response;
}

}  // namespace stela::tool

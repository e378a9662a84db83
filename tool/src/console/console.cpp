#include "console/console.hpp"

#include "cli/text.hpp"
#include "console/find.hpp"
#include "console/problem.hpp"

#include <stela/framework/codec/json_writer.hpp>
#include <stela/framework/version.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

/// What the browser must not do with an answer, whatever is in it.
HttpResponse guarded_answer(HttpResponse response) {
  response.fields.insert(
      response.fields.end(),
      {{"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
        "'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"},
       {"X-Content-Type-Options", "nosniff"},
       {"Referrer-Policy", "no-referrer"},
       {"Cross-Origin-Opener-Policy", "same-origin"},
       {"Cross-Origin-Resource-Policy", "same-origin"}});
  return response;
}

constexpr std::string_view data_prefix = "/api/v1/s/";

/// A store's name and what is asked of it.
struct Place {
  std::string store;
  std::string_view rest;
};

std::optional<Place> place_of(std::string_view path) {
  if (!path.starts_with(data_prefix)) return {};
  path.remove_prefix(data_prefix.size());
  const std::size_t slash = std::min(path.find('/'), path.size());
  auto store = decode_percent(path.substr(0, slash));
  if (!store) return {};
  return Place{*std::move(store), path.substr(std::min(slash + 1, path.size()))};
}

std::optional<HttpRequest> under(const std::string& base_path, const HttpRequest& request) {
  if (!request.path.starts_with(base_path)) return {};
  HttpRequest inside = request;
  inside.path.erase(0, base_path.size() - 1);
  return inside;
}

}  // namespace

Console::Console(const Api& api, const App& app, Options options)
    : api_{api},
      app_{app},
      options_{std::move(options)},
      gate_{{.base_path = options_.base_path, .machine_token = options_.machine_token}},
      page_{options_.base_path, options_.web_root} {
  for (const ServedStore& store : options_.stores) {
    overviews_.push_back(std::make_unique<Overview>(api_, store, options_.asks_broker));
  }
}

std::string Console::new_link() {
  return options_.base_path + "#k=" + gate_.new_link();
}

std::string Console::facts() const {
  std::string stores;
  for (const ServedStore& store : options_.stores) {
    stores += stores.empty() ? "" : ",";
    json::append_string(stores, store.name);
  }
  std::string text = "\"stores\":[" + stores + "],\"environment\":";
  if (options_.environment.empty()) {
    text += "null";
  } else {
    json::append_string(text, options_.environment);
  }
  std::string more;
  json::ObjectWriter{more}
      .add("program", app_.name)
      .add("version", version())
      .add("can_act", false)
      .add("has_types", app_.has_aggregates())
      .close();
  return text + ",\"color\":null," + more.substr(1, more.size() - 2);
}

std::optional<HttpResponse> Console::answer_at_once(const HttpRequest& request) {
  auto response = pass(request);
  if (!response) return {};
  return guarded_answer(*std::move(response));
}

std::optional<HttpResponse> Console::pass(const HttpRequest& outside) {
  if (auto refusal = gate_.refuse_host(outside)) return refusal;
  const auto request = under(options_.base_path, outside);
  if (!request) return problem(404, "Not found", "the console is at " + options_.base_path);
  if (request->path == "/healthz") return HttpResponse{.body = "ok\n"};
  const bool is_session = request->path == "/api/v1/session";
  if (request->method == "POST" && !is_session) {
    return problem(405, "Not allowed", "this console only reads");
  }
  if (is_session) return gate_.session(*request, facts());
  if (!request->path.starts_with("/api/")) return page_.answer(request->path);
  if (auto refusal = gate_.refuse(*request)) return refusal;
  const auto place = place_of(request->path);
  if (!place) return problem(404, "Not found", "data is at /api/v1/s/STORE/");
  for (std::size_t i = 0; i < options_.stores.size(); ++i) {
    if (options_.stores[i].name != place->store) continue;
    return place->rest == "overview" ? overviews_[i]->answer_at_once(*request) : std::nullopt;
  }
  return problem(404, "Not found", "there is no store '" + in_one_line(place->store) + "' here");
}

HttpResponse Console::answer(const HttpRequest& outside) {
  const HttpRequest request = *under(options_.base_path, outside);
  const Place place = *place_of(request.path);
  for (std::size_t i = 0; i < options_.stores.size(); ++i) {
    if (options_.stores[i].name != place.store) continue;
    const ServedStore& store = options_.stores[i];
    if (place.rest == "overview") return guarded_answer(overviews_[i]->answer(request));
    if (place.rest == "find") return guarded_answer(find(api_, store, request.query));
    return guarded_answer(api_.answer(store, place.rest, request.query));
  }
  return problem(404, "Not found", "there is no such store here");
}

}  // namespace stela::tool

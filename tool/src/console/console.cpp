#include "console/console.hpp"

#include "cli/text.hpp"
#include "console/find.hpp"
#include "console/openapi.hpp"
#include "console/problem.hpp"
#include "console/redaction.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/version.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

/// Forbids the browser unsafe uses of an answer, whatever its content.
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

/// A store's name, and the rest of the path.
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

Console::Console(const ConsoleCommands& commands, const App& app, Options options)
    : commands_{commands},
      api_{commands},
      app_{app},
      options_{std::move(options)},
      gate_{options_.gate},
      page_{options_.gate.base_path, options_.web_root},
      jobs_{commands, options_.user, options_.host} {
  for (const ServedStore& store : options_.stores) {
    overviews_.try_emplace(store.name, api_, store, options_.asks_broker);
  }
}

bool Console::can_act() const {
  return std::any_of(options_.stores.begin(), options_.stores.end(),
                     [](const ServedStore& store) { return !store.acting_place.empty(); });
}

const ServedStore* Console::find_store(std::string_view name) const {
  const auto found = std::find_if(options_.stores.begin(), options_.stores.end(),
                                  [&](const ServedStore& store) { return store.name == name; });
  return found == options_.stores.end() ? nullptr : &*found;
}

std::string Console::new_link() {
  return options_.gate.base_path + "#k=" + gate_.new_link();
}

std::string Console::facts(const Asker& asker) const {
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
      .add("can_act", can_act() && asker.grants.has(Grant::operate))
      .add("acts", can_act())
      .add("has_types", app_.has_aggregates())
      .close();
  text += ",\"export\":";
  const ServedStore& first = options_.stores.front();
  if (first.exported_in.empty()) {
    text += "null";
  } else {
    json::ObjectWriter{text}
        .add("file", first.exported_in)
        .add("last_event_at", first.exported_at)
        .close();
  }
  std::string grants;
  json::ObjectWriter{grants}
      .add("view", asker.grants.view)
      .add("payloads", name_of(asker.grants.payloads))
      .add("operate", asker.grants.operate)
      .add("admin", asker.grants.admin)
      .close();
  text += ",\"who\":";
  json::append_string(text, asker.name.empty() ? options_.user : asker.name);
  return text + ",\"grants\":" + grants + ",\"color\":null," + more.substr(1, more.size() - 2);
}

std::optional<HttpResponse> Console::answer_at_once(const HttpRequest& request) {
  auto response = pass(request);
  if (!response) return {};
  return guarded_answer(*std::move(response));
}

std::optional<HttpResponse> Console::pass(const HttpRequest& outside) {
  if (auto refusal = gate_.refuse_way(outside)) return refusal;
  const auto request = under(options_.gate.base_path, outside);
  if (!request) return problem(404, "Not found", "the console is at " + options_.gate.base_path);
  if (request->path == "/healthz") return HttpResponse{.body = "ok\n"};
  if (request->path == "/api/v1/session") {
    return gate_.session(*request, [&](const Asker& asker) { return facts(asker); });
  }
  if (auto refusal = refuse_change(*request)) return refusal;
  if (!request->path.starts_with("/api/")) return page_.answer(request->path);
  HttpResponse refusal;
  const auto asker = admit(*request, refusal);
  if (!asker) return refusal;
  if (request->path == "/api/v1/openapi.json") return json_answer(openapi(commands_, version()));
  const auto place = place_of(request->path);
  if (!place) return problem(404, "Not found", "data is at /api/v1/s/STORE/");
  if (find_store(place->store) == nullptr) {
    return problem(404, "Not found", "there is no store '" + in_one_line(place->store) + "' here");
  }
  if (place->rest != "overview") return {};
  return overviews_.find(place->store)->second.answer_at_once(*request, asker->grants.payloads);
}

std::optional<Asker> Console::admit(const HttpRequest& request, HttpResponse& refusal) {
  auto asker = gate_.admit(request, refusal);
  if (!asker || asker->grants.has(Grant::view)) return asker;
  refusal = not_granted(Grant::view);
  return {};
}

std::optional<HttpResponse> Console::refuse_change(const HttpRequest& request) const {
  if (request.method != "POST") return {};
  const auto place = place_of(request.path);
  const ServedStore* store = place ? find_store(place->store) : nullptr;
  const bool is_job =
      store != nullptr && (place->rest == "jobs" || place->rest.starts_with("jobs/"));
  if (!is_job && can_act()) {
    return problem(405, "Not allowed", "nothing but a job is posted: to /api/v1/s/STORE/jobs");
  }
  if (!is_job || store->acting_place.empty()) {
    return problem(
        405, "Not allowed",
        "this console only reads; 'serve --allow-actions' and '--operate-as' let it act");
  }
  return {};
}

std::size_t Console::lane(const HttpRequest& outside) const {
  const auto request = under(options_.gate.base_path, outside);
  const auto place = request ? place_of(request->path) : std::nullopt;
  const ServedStore* store = place ? find_store(place->store) : nullptr;
  return store == nullptr ? 0 : static_cast<std::size_t>(store - options_.stores.data());
}

HttpResponse Console::answer(const HttpRequest& outside) {
  const HttpRequest request = *under(options_.gate.base_path, outside);
  const Place place = *place_of(request.path);
  // The user may have lost its grants while it waited.
  HttpResponse refusal;
  const auto asker = admit(request, refusal);
  if (!asker) return guarded_answer(std::move(refusal));
  try {
    return guarded_answer(give(*find_store(place.store), place.rest, request, *asker));
  } catch (const std::exception& e) {
    return guarded_answer(
        problem(500, "Failed", Redaction{asker->grants.payloads, true}.sentence(e.what())));
  }
}

HttpResponse Console::give(const ServedStore& store, std::string_view rest,
                           const HttpRequest& request, const Asker& asker) {
  const Grants& grants = asker.grants;
  if (rest == "overview") {
    return overviews_.find(store.name)->second.answer(request, grants.payloads);
  }
  if (rest == "find") return find(api_, store, request.query, grants.has(Grant::payloads));
  if (rest == "jobs" || rest.starts_with("jobs/")) {
    return jobs_.answer(store, rest.substr(4), request, asker);
  }
  return api_.answer(store, rest, request.query, grants);
}

}  // namespace stela::tool

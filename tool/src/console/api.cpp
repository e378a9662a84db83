#include "console/api.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "console/problem.hpp"
#include "console/redaction.hpp"
#include "console/routes.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <optional>

namespace stela::tool {
namespace {

const Route* route_of(std::string_view command) {
  for (const Route& route : all_routes()) {
    if (route.command == command) return &route;
  }
  return nullptr;
}

/// A command with its operands, from a path.
struct Asked {
  const Route* route = nullptr;
  std::vector<std::string> operands = {};
};

/// The longest command at the beginning of the path. Empty if a part of it can't be decoded.
std::optional<Asked> asked_for(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    auto text = decode_percent(part);
    if (!text) return {};
    parts.push_back(*std::move(text));
  }
  Asked asked;
  std::string words;
  std::size_t used = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    words += (words.empty() ? "" : " ") + parts[i];
    if (const Route* route = route_of(words)) {
      asked.route = route;
      used = i + 1;
    }
  }
  asked.operands.assign(parts.begin() + static_cast<std::ptrdiff_t>(used), parts.end());
  return asked;
}

/// `{"option":"after","value":"17",…}`, or null.
std::string in_json(const std::optional<Output::More>& more) {
  if (!more) return "null";
  std::string text;
  json::ObjectWriter{text}
      .add("option", std::string_view{more->option}.substr(2))
      .add("value", more->value)
      .add("note", more->found)
      .add("look_further", !more->found.empty())
      .close();
  return text;
}

HttpResponse refusal_of(int code, std::string_view error) {
  switch (code) {
    case usage:
      return problem(400, "Not understood", error);
    case not_found:
      return problem(404, "Not found", error);
    case cannot_connect:
      return problem(503, "No connection", error);
    default:
      return problem(500, "Failed", error);
  }
}

using Options = std::vector<std::pair<std::string, std::string>>;

std::optional<Grant> missing_grant(const Route& route, const Options& options,
                                   const Grants& grants) {
  if (!grants.has(route.grant)) return route.grant;
  const bool searches = std::any_of(options.begin(), options.end(), [](const auto& option) {
    return searches_payloads("--" + option.first);
  });
  if (searches && !grants.has(Grant::payloads)) return Grant::payloads;
  return {};
}

}  // namespace

std::string Api::Answer::json() const {
  if (is_list) return kept.list();
  const std::string text = kept.out.substr(0, kept.out.find('\n'));
  return text.empty() ? "null" : text;
}

Api::Answer Api::ask(const ServedStore& store, const CommandCall& call) const {
  const Route& route = *route_of(call.command);
  Answer answer{.is_list = route.is_list, .has_states = route.has_states};
  try {
    Arguments arguments = commands_.arguments(store, call);
    // A person waits for the page, so a silent server is reported soon.
    if (is_on_server(store.place)) {
      for (const char* const limit :
           {"store.connect_timeout=2s", "store.busy_timeout=2s", "store.reply_timeout=4s"}) {
        arguments.add("--set", limit);
      }
    }
    Output out{{.json = true, .no_color = true, .kept = &answer.kept}};
    answer.code = commands_.run(
        commands_.find(call.command), arguments, out,
        route.tries_lock ? Invocation::Access::writes : Invocation::Access::only_reads);
  } catch (const Misuse& e) {
    answer.code = usage;
    answer.kept.error = e.what();
  }
  return answer;
}

std::string Api::as_of(const ServedStore& store) const {
  const bool is_export = !store.exported_in.empty();
  const std::string at = is_export ? store.exported_at : to_string(system_clock().now());
  const Answer head = ask(store, {.command = "events head"});
  // {"head":4711}
  const std::string text = head.json();
  const std::size_t colon = text.find(':');
  const bool is_known = head.code == done && colon != std::string::npos;
  const std::string sequence =
      is_known ? text.substr(colon + 1, text.size() - colon - 2) : std::string{"null"};
  std::string json = "{\"sequence\":" + sequence + ",\"at\":\"" + at + "\"";
  if (is_export) {
    json += ",\"export\":";
    json::append_string(json, store.exported_in);
  }
  return json + "}";
}

HttpResponse Api::answer(const ServedStore& store, std::string_view path, std::string_view query,
                         const Grants& grants) const {
  const auto asked = asked_for(path);
  const auto options = decode_query(query);
  if (!asked || !options)
    return problem(400, "Not understood", "the path or the query isn't encoded as it must be");
  if (asked->route == nullptr) {
    return problem(404, "Not found", "there is nothing of this name to ask for");
  }
  if (const auto missing = missing_grant(*asked->route, *options, grants)) {
    return not_granted(*missing);
  }
  const Redaction redaction{grants.payloads, true};
  const std::string as_of_json = as_of(store);
  const Answer answer = ask(store, {asked->route->command, asked->operands, *options});
  // The exit codes of checks and explanations are results, not errors.
  if (!answer.kept.error.empty()) {
    const bool is_of_asker = answer.code == usage || answer.code == not_found;
    return refusal_of(answer.code,
                      is_of_asker ? answer.kept.error : redaction.sentence(answer.kept.error));
  }
  return json_answer("{\"as_of\":" + as_of_json +
                     ",\"data\":" + redaction.json(answer.json(), answer.has_states) +
                     ",\"more\":" + in_json(answer.kept.more) + "}");
}

}  // namespace stela::tool

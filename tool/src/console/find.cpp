#include "console/find.hpp"

#include "cli/exit.hpp"
#include "console/problem.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

namespace stela::tool {
namespace {

/// A list whose rows have the name under this key.
struct Named {
  std::string_view kind;
  std::string_view command;
  std::string_view key;
};

constexpr Named all_named[] = {
    {"partition", "outbox partitions list", "partition"},
    {"process", "processes list", "process"},
    {"projector", "projections status", "projector"},
    {"consumer", "inbox status", "consumer"},
    {"worker", "outbox workers", "worker"},
};

/// The command that shows one object of this kind, or its first row.
struct Shown {
  std::string_view kind;
  CommandCall call;
};

bool has_named(const Api& api, const ServedStore& store, const Named& named,
               const std::string& name) {
  const Api::Answer answer = api.ask(store, {.command = named.command});
  std::string member = "\"" + std::string{named.key} + "\":";
  return answer.code == done && json::try_append_string(member, name) &&
         answer.kept.out.find(member) != std::string::npos;
}

std::string_view kind_of(const Api& api, const ServedStore& store, const std::string& name,
                         bool looks_for_tags) {
  const std::vector<Shown> all_shown{
      {"event", {"events show", {name}}},
      {"stream", {"streams show", {name}, {{"limit", "1"}}}},
      {"correlation", {"events list", {}, {{"correlation", name}, {"limit", "1"}}}},
      {"tag", {"tags show", {name}, {{"limit", "1"}}}},
  };
  for (const Named& named : all_named) {
    if (has_named(api, store, named, name)) return named.kind;
  }
  for (const Shown& shown : all_shown) {
    if (shown.kind == "tag" && !looks_for_tags) continue;
    const Api::Answer answer = api.ask(store, shown.call);
    if (answer.code == done && !answer.kept.out.empty()) return shown.kind;
  }
  return {};
}

}  // namespace

HttpResponse find(const Api& api, const ServedStore& store, std::string_view query,
                  bool looks_for_tags) {
  const auto options = decode_query(query);
  if (!options || options->size() != 1 || options->front().first != "q") {
    return problem(400, "Not understood", "?q=WORD");
  }
  const std::string& name = options->front().second;
  const std::string_view kind = kind_of(api, store, name, looks_for_tags);
  std::string json = "{\"kind\":";
  if (kind.empty()) {
    json += "null";
  } else {
    json::append_string(json, kind);
  }
  json += ",\"name\":";
  if (!json::try_append_string(json, name)) return problem(400, "Not understood", "not UTF-8");
  return json_answer(json += '}');
}

}  // namespace stela::tool

// topology: the event types, and the followers that handle them.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "description/description.hpp"
#include "store_session.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/timers.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace stela::tool {
namespace {

using Names = std::vector<std::string>;

/// Events of a type, known from the database or the application.
struct Declared {
  std::string category;
  std::string type;
  bool publishes = false;
  bool is_recorded = false;
  /// Shown to people only.
  std::string followers = {};
};

/// A follower of events. The events that it handles and the timers that it sets are known from its
/// type alone.
struct Following {
  std::string name;
  std::string kind;
  std::optional<Names> handles = {};
  std::optional<Names> timers = {};
  std::string broker_stream = {};
  std::string filter = {};
  bool is_in_database = true;
};

bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value list_of(const std::optional<Names>& names) {
  if (!names) return {};
  return json_list(*names, [](const std::string& name) {
    std::string text;
    json::append_string(text, name);
    return text;
  });
}

std::string line_of(const std::optional<Names>& names) {
  if (!names) return "?";
  std::string line;
  for (const std::string& name : *names) line.append(line.empty() ? "" : " ").append(name);
  return line;
}

constexpr Field<Declared> declared_fields[] = {
    field<&Declared::category>("category", {.absent = "-"}),
    field<&Declared::type>("type"),
    field<&Declared::publishes>("publishes"),
    field<&Declared::is_recorded>("is_recorded", {.title = "recorded"}),
    field<&Declared::followers>("followers", {.absent = "-", .is_text_only = true}),
};
constexpr Description<Declared> declared{
    declared_fields, {.table = "category type publishes is_recorded followers"}};

constexpr Field<Following> following_fields[] = {
    field<&Following::name>("follower"),
    field<&Following::kind>("kind"),
    field<[](const Following& one) { return list_of(one.handles); }>("handles",
                                                                     {.kind = Kind::json}),
    field<[](const Following& one) { return list_of(one.timers); }>("timers", {.kind = Kind::json}),
    field<&Following::broker_stream>("broker_stream", {.title = "from", .absent = "-"}),
    field<&Following::filter>("filter", {.absent = "-"}),
    field<&Following::is_in_database>("is_in_database"),
    field<[](const Following& one) { return line_of(one.handles); }>(
        "types", {.title = "handles", .absent = "-", .is_text_only = true}),
    field<[](const Following& one) { return line_of(one.timers); }>(
        "kinds", {.title = "timers", .absent = "-", .is_text_only = true}),
};
constexpr Description<Following> following{
    following_fields, {.table = "follower kind broker_stream filter kinds types"}};

/// The event types of the database and of the application's aggregates, by category and type.
std::vector<Declared> declared_types(Store& store, const App& app) {
  std::map<std::pair<std::string, std::string>, Declared> all;
  const auto find = [&](const std::string& category, std::string_view type) -> Declared& {
    return all.try_emplace({category, std::string{type}}, Declared{category, std::string{type}})
        .first->second;
  };
  const GlobalSequence after_last{store.last_sequence().value() + 1};
  for (const KindCount& kind :
       StoreOperations{store}.count_events({.from = after_last, .lists_all = true})) {
    Declared& one = find(kind.category, kind.type);
    one.is_recorded = true;
    one.publishes = one.publishes || kind.publishes;
  }
  for (const auto& [category, types] : app.event_types()) {
    for (const EventType& type : types) {
      Declared& one = find(category, type.name);
      one.publishes = one.publishes || type.publication == should_publish;
    }
  }
  std::vector<Declared> list;
  for (auto& [key, one] : all) list.push_back(std::move(one));
  return list;
}

using ByName = std::map<std::string, Following, std::less<>>;

/// The database's projectors, reactions and processes.
ByName registered_in(Store& store) {
  ByName all;
  for (const ProjectorStatus& one : ProjectionOperations{store}.status()) {
    if (one.state == BuildState::scratch || one.state == BuildState::retired) continue;
    all.try_emplace(one.name, Following{one.name, std::string{to_string(one.kind)}});
  }
  for (const ProcessStatus& one : TimerOperations{store}.processes()) {
    all.try_emplace(one.name, Following{one.name, {}}).first->second.kind = "process";
  }
  return all;
}

/// Notes what the application would register, and registers nothing.
void add_types(Store& store, const App& app, ByName& all) {
  Projections noted{store, Projections::OnlyNoted{}};
  app.projections(noted);
  for (const detail::Registration& one : noted.registrations()) {
    const std::string kind = one.has_timers ? "process" : std::string{to_string(one.kind)};
    const auto [at, is_new] = all.try_emplace(one.name, Following{one.name, kind});
    Following& follower = at->second;
    if (is_new) follower.is_in_database = false;
    follower.handles.emplace();
    // The versions of an event usually share one name.
    for (const std::string& type : one.event_types) {
      if (!has(*follower.handles, type)) follower.handles->push_back(type);
    }
    follower.timers.emplace();
    if (!one.has_timers) continue;
    for (const std::string_view timer : one.make_process()->timer_kinds()) {
      follower.timers->emplace_back(timer);
    }
  }
}

/// Adds events that followers handle, but no aggregate records and the database lacks.
void add_handled_types(const std::vector<Following>& followers, std::vector<Declared>& types) {
  for (const Following& one : followers) {
    for (const std::string& name : one.handles.value_or(Names{})) {
      const bool is_known = std::any_of(types.begin(), types.end(),
                                        [&](const Declared& type) { return type.type == name; });
      if (!is_known) types.push_back({.category = {}, .type = name});
    }
  }
}

void add_consumers(Store& store, std::vector<Following>& followers) {
  for (const nats::ConsumerStatus& one : nats::InboxOperations{store}.status()) {
    for (const nats::ReaderStatus& reader : one.readers) {
      followers.push_back({.name = reader.consumer,
                           .kind = "consumer",
                           .broker_stream = reader.broker_stream,
                           .filter = reader.filter});
    }
  }
}

void name_followers(std::vector<Declared>& types, const std::vector<Following>& followers,
                    bool has_outbox) {
  for (Declared& type : types) {
    Names names;
    if (has_outbox && type.publishes) names.emplace_back("(outbox)");
    for (const Following& one : followers) {
      if (!one.handles) continue;
      if (has(*one.handles, type.type)) names.push_back(one.name);
    }
    type.followers = line_of(names);
  }
}

int topology(Invocation& call) {
  StoreSession session{call, {.only_reads = true}};
  Store& store = session.store();
  std::vector<Declared> types = declared_types(store, call.app);
  ByName registered = registered_in(store);
  const bool are_types_known = static_cast<bool>(call.app.projections);
  if (are_types_known) add_types(store, call.app, registered);
  std::vector<Following> followers;
  for (auto& [name, one] : registered) followers.push_back(std::move(one));
  add_handled_types(followers, types);
  add_consumers(store, followers);
  const auto required = StoreOperations{store}.required_participants();
  const bool has_outbox = std::any_of(required.begin(), required.end(),
                                      [](const auto& one) { return one.name == "outbox"; });
  if (call.out.is_json()) {
    call.out.json(to_json({{"types_known", are_types_known},
                           {"outbox", has_outbox},
                           {"event_types", json_list(declared, types)},
                           {"followers", json_list(following, followers)}}));
    return done;
  }
  name_followers(types, followers, has_outbox);
  print_list(call.out, declared, types);
  call.out.line();
  print_list(call.out, following, followers);
  if (!are_types_known) {
    call.out.note(
        "Which types projectors, reactions and processes handle is known to the application's own "
        "tool.");
  }
  return done;
}

}  // namespace

Command topology_command() {
  return {.path = "topology",
          .summary = "Show which followers handle which event types",
          .about =
              "Event types are those of the database, and in an application's own tool those "
              "of its aggregates. Only such a tool knows what projectors, reactions and "
              "processes handle, and which timers they set: it says so without registering "
              "anything. Consumers read streams of a broker; the outbox takes what is "
              "published.",
          .options = {db_option},
          .examples = {{"who handles what?", "topology --db shop.db"}},
          .run = topology};
}

}  // namespace stela::tool

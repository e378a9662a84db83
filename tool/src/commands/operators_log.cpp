// log: what operators did; changes: what changed by itself, too.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "description/description.hpp"
#include "store_session.hpp"

#include <stela/eventstore/journal.hpp>
#include <stela/eventstore/operator_action.hpp>
#include <stela/projections/timers.hpp>

#include <algorithm>
#include <iterator>
#include <vector>

namespace stela::tool {
namespace {

struct Logged {
  std::string part;
  OperatorAction action;
};

constexpr Field<Logged> logged_fields[] = {
    field<[](const Logged& one) { return one.action.at; }>("at"),
    field<[](const Logged& one) { return one.action.who; }>("who", {.kind = Kind::untrusted}),
    field<&Logged::part>("part"),
    field<[](const Logged& one) { return one.action.what; }>("what"),
    field<[](const Logged& one) { return one.action.detail; }>(
        "detail", {.kind = Kind::untrusted, .most = 80}),
    field<[](const Logged& one) { return one.action.number; }>("action"),
};
constexpr Description<Logged> logged{logged_fields, {.table = "at who part what detail"}};

/// What has no log of its own. The outbox has one.
void take_of_journal(Store& store, int limit, std::vector<Logged>& all) {
  constexpr int page = 1'000;
  Journal journal{store};
  JournalQuery query{.limit = page};
  for (int found = 0; found < limit;) {
    const auto entries = journal.entries(query);
    for (const JournalEntry& one : entries) {
      if (one.who.empty() || one.part == "outbox") continue;
      all.push_back(
          {one.part, {one.number, one.at, one.who, one.what, one.subject + ": " + one.detail}});
      ++found;
    }
    if (entries.size() < page) return;
    query.before = entries.back().number;
  }
}

/// The newest first.
std::vector<Logged> last_actions(StoreSession& session, int limit) {
  std::vector<Logged> all;
  const auto take = [&](std::string_view part, const std::vector<OperatorAction>& actions) {
    std::transform(actions.begin(), actions.end(), std::back_inserter(all),
                   [&](const OperatorAction& action) {
                     return Logged{std::string{part}, action};
                   });
  };
  if (session.has_outbox()) take("outbox", session.operations().actions({.limit = limit}));
  take("timers", TimerOperations{session.store()}.actions({.limit = limit}));
  take_of_journal(session.store(), limit, all);
  std::stable_sort(all.begin(), all.end(),
                   [](const Logged& a, const Logged& b) { return a.action.at > b.action.at; });
  if (all.size() > static_cast<std::size_t>(limit)) all.resize(static_cast<std::size_t>(limit));
  return all;
}

int show_log(Invocation& call) {
  const int limit =
      static_cast<int>(call.arguments.integer("--limit", {1, 1'000'000}).value_or(100));
  StoreSession session{call, {.only_reads = true}};
  print_list(call.out, logged, last_actions(session, limit));
  return done;
}

constexpr Field<JournalEntry> change_fields[] = {
    field<&JournalEntry::at>("at"),
    field<&JournalEntry::part>("part"),
    field<&JournalEntry::subject>("subject", {.kind = Kind::untrusted, .absent = "-"}),
    field<&JournalEntry::what>("what"),
    field<&JournalEntry::who>("who", {.kind = Kind::untrusted, .absent = "-"}),
    field<&JournalEntry::detail>("detail", {.kind = Kind::untrusted, .most = 80}),
    field<&JournalEntry::number>("change"),
};
constexpr Description<JournalEntry> journal_entry{change_fields,
                                                  {.table = "at part subject what who detail"}};

int show_changes(Invocation& call) {
  const int limit =
      static_cast<int>(call.arguments.integer("--limit", {1, 1'000'000}).value_or(100));
  const std::int64_t before = call.arguments.integer("--before", {1, largest}).value_or(largest);
  StoreSession session{call, {.only_reads = true}};
  const auto entries = Journal{session.store()}.entries({.before = before, .limit = limit});
  print_list(call.out, journal_entry, entries);
  if (std::ssize(entries) == limit && !call.out.is_json()) {
    call.out.more({"--before", std::to_string(entries.back().number)});
  }
  return done;
}

}  // namespace

Command log_command() {
  return {.path = "log",
          .summary = "Show who did what, the newest first",
          .about = "What operators did to the outbox, projections, timers and consumers.",
          .options = {db_option, limit_option},
          .examples = {{"what was done last", "log --limit 10"}},
          .run = show_log};
}

Command changes_command() {
  return {
      .path = "changes",
      .summary = "Show what stopped, went on or was taken over, the newest first",
      .about =
          "Partitions that stop and go on, workers that lose their broker, projectors that stop, "
          "what one process takes over from another, and what operators change. Kept for 90 days, "
          "and 100,000 "
          "at most.",
      .options = {db_option,
                  limit_option,
                  {"--before", "CHANGE", "only those before this one: the next page"}},
      .examples = {{"what happened in the night", "changes --limit 20"}},
      .run = show_changes};
}

}  // namespace stela::tool

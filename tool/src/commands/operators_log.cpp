// log: what operators did, over all parts that record it.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "description/description.hpp"
#include "store_session.hpp"

#include <stela/eventstore/operator_action.hpp>
#include <stela/projections/timers.hpp>

#include <algorithm>
#include <iterator>
#include <vector>

namespace stela::tool {
namespace {

struct Logged {
  std::string_view part;
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

/// The newest first.
std::vector<Logged> last_actions(StoreSession& session, int limit) {
  std::vector<Logged> all;
  const auto take = [&](std::string_view part, const std::vector<OperatorAction>& actions) {
    std::transform(actions.begin(), actions.end(), std::back_inserter(all),
                   [&](const OperatorAction& action) {
                     return Logged{part, action};
                   });
  };
  if (session.has_outbox()) take("outbox", session.operations().actions({.limit = limit}));
  take("timers", TimerOperations{session.store()}.actions({.limit = limit}));
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

}  // namespace

Command log_command() {
  return {.path = "log",
          .summary = "Show who did what to the outbox and to timers, the newest first",
          .options = {db_option, limit_option},
          .examples = {{"what was done last", "log --limit 10"}},
          .run = show_log};
}

}  // namespace stela::tool

// log: what operators did; changes: also what changed by itself.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "description/description.hpp"
#include "store_session.hpp"

#include <stela/eventstore/detail/journal.hpp>
#include <stela/eventstore/operator_action.hpp>
#include <stela/projections/timers.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace stela::tool {
namespace {

/// An action with its id: "o12" of the outbox, "t3" of timers, "c17" of the changes.
struct Logged {
  std::string id;
  std::string part;
  OperatorAction action;
};

/// How many planned items it missed because it failed.
std::optional<std::int64_t> failed_of(const Logged& one) {
  const OperatorAction& action = one.action;
  if (!action.planned) return std::nullopt;
  if (action.state != "failed") return 0;
  return std::max<std::int64_t>(
      *action.planned - action.done.value_or(0) - action.changed.value_or(0), 0);
}

/// The progress of an unfinished action; its detail may be its first step.
std::string detail_of(const Logged& one) {
  const OperatorAction& action = one.action;
  if (action.state == "done" || !action.done) return action.detail;
  const std::string came =
      action.planned ? in_digits(*action.done) + " of " + counted(*action.planned, "message")
                     : counted(*action.done, "message");
  return action.state == "failed" && !action.detail.empty() ? came + ": " + action.detail : came;
}

constexpr Field<Logged> logged_fields[] = {
    field<&Logged::id>("id"),
    field<[](const Logged& one) { return one.action.at; }>("at"),
    field<[](const Logged& one) { return one.action.who; }>("who", {.kind = Kind::untrusted}),
    field<&Logged::part>("part"),
    field<[](const Logged& one) { return one.action.what; }>("what"),
    field<[](const Logged& one) { return one.action.selection; }>("selection",
                                                                  {.kind = Kind::untrusted}),
    field<[](const Logged& one) { return one.action.planned; }>("planned"),
    field<[](const Logged& one) { return one.action.done; }>("done"),
    field<[](const Logged& one) { return one.action.changed; }>("changed"),
    field<failed_of>("failed"),
    field<[](const Logged& one) { return one.action.state; }>("state", {.kind = Kind::word}),
    field<[](const Logged& one) { return one.action.detail; }>(
        "detail", {.kind = Kind::untrusted, .most = 80}),
    field<detail_of>(
        "so_far", {.title = "detail", .kind = Kind::untrusted, .most = 80, .is_text_only = true}),
};
constexpr Description<Logged> logged{
    logged_fields,
    {.table = "id at who part what state so_far",
     .sheet = "id at who part what selection planned done changed failed state detail"}};

constexpr Field<OperatorAction> step_fields[] = {
    field<&OperatorAction::number>("step"),
    field<&OperatorAction::at>("at"),
    field<&OperatorAction::what>("what"),
    field<&OperatorAction::detail>("detail", {.kind = Kind::untrusted, .most = 80}),
};
constexpr Description<OperatorAction> step_of_action{step_fields, {.table = "step at what detail"}};

/// One of the tables of actions. Threads: one at a time.
class ActionSource {
 public:
  using Read = std::function<std::vector<Logged>(const ActionQuery&)>;

  ActionSource(char letter, Direction direction, Read read)
      : letter_{letter}, query_{.direction = direction}, read_{std::move(read)} {}

  char letter() const noexcept { return letter_; }
  /// The last action taken: "o12". Empty if there was none.
  const std::string& place() const noexcept { return place_; }
  void go_to(std::int64_t number) {
    place_ = letter_ + std::to_string(number);
    (query_.direction == Direction::backward ? query_.before : after_) = number;
    query_.after = after_.value_or(0);
  }

  /// The next action; null at the end. Reads at most `most` at once.
  const Logged* next(std::int64_t most) {
    if (ready_.empty() && !is_at_end_) {
      query_.limit = static_cast<int>(std::min(most, rows_at_once));
      const auto found = read_(query_);
      is_at_end_ = std::ssize(found) < query_.limit;
      ready_.assign(found.begin(), found.end());
    }
    return ready_.empty() ? nullptr : &ready_.front();
  }
  Logged take() {
    Logged one = std::move(ready_.front());
    ready_.pop_front();
    go_to(one.action.number);
    return one;
  }

 private:
  const char letter_;
  ActionQuery query_;
  std::optional<std::int64_t> after_ = {};
  const Read read_;
  std::deque<Logged> ready_ = {};
  bool is_at_end_ = false;
  std::string place_ = {};
};

std::vector<Logged> with_part(char letter, std::string_view part,
                              std::vector<OperatorAction> actions) {
  std::vector<Logged> all;
  for (OperatorAction& action : actions) {
    all.push_back({letter + std::to_string(action.number), std::string{part}, std::move(action)});
  }
  return all;
}

/// "p03: refused"; either may be empty.
std::string join(const std::string& subject, const std::string& detail) {
  return subject + (subject.empty() || detail.empty() ? "" : ": ") + detail;
}

/// Also returns changes without an operator; the list of actions skips those.
std::vector<Logged> of_journal(Store& store, const ActionQuery& query) {
  std::vector<Logged> all;
  for (JournalEntry& one : Journal{store}.entries({.before = query.before.value_or(largest),
                           .limit = query.limit,
                           .after = query.after,
                           .direction = query.direction})) {
    all.push_back({'c' + std::to_string(one.number),
                   one.part,
                   {.number = one.number,
                    .at = one.at,
                    .who = std::move(one.who),
                    .what = std::move(one.what),
                    .detail = join(one.subject, one.detail)}});
  }
  return all;
}

/// Outbox and timers have their own logs, so the journal's copies of their actions don't count.
bool is_action(const Logged& one) {
  const bool is_again = one.id.front() == 'c' && (one.part == "outbox" || one.part == "timers");
  return !one.action.who.empty() && !is_again;
}

/// "ann" also matches ann@shop.
bool is_by(const Logged& one, const std::optional<std::string>& who) {
  return !who || one.action.who == *who || one.action.who.starts_with(*who + "@");
}

std::vector<ActionSource> sources_of(StoreSession& session, Direction direction) {
  std::vector<ActionSource> sources;
  if (session.has_outbox()) {
    sources.emplace_back('o', direction, [&session](const ActionQuery& query) {
      return with_part('o', "outbox", session.operations().actions(query));
    });
  }
  sources.emplace_back('t', direction, [&session](const ActionQuery& query) {
    return with_part('t', "timers", TimerOperations{session.store()}.actions(query));
  });
  sources.emplace_back('c', direction, [&session](const ActionQuery& query) {
    return of_journal(session.store(), query);
  });
  return sources;
}

/// Splits "o12" into its source and its number there.
std::pair<char, std::int64_t> parse_id(const std::string& text) {
  if (text.empty() || std::string_view{"otc"}.find(text.front()) == std::string_view::npos) {
    throw Misuse{"an action is named as 'stela log' names it, such as o12; not '" +
                 in_one_line(text) + "'"};
  }
  return {text.front(), to_integer(text.substr(1), "an action's number", {1, largest})};
}

/// Continues at the places of sources that were already read: "o12,t3".
void go_to(std::vector<ActionSource>& sources, std::string_view places) {
  while (!places.empty()) {
    const std::size_t comma = std::min(places.find(','), places.size());
    const auto [letter, number] = parse_id(std::string{places.substr(0, comma)});
    for (ActionSource& source : sources) {
      if (source.letter() == letter) source.go_to(number);
    }
    places.remove_prefix(std::min(comma + 1, places.size()));
  }
}

std::string places_of(const std::vector<ActionSource>& sources) {
  std::string text;
  for (const ActionSource& source : sources) {
    if (source.place().empty()) continue;
    text.append(text.empty() ? "" : ",").append(source.place());
  }
  return text;
}

/// The source whose next action comes first of all. Null at the end.
ActionSource* next_of(std::vector<ActionSource>& sources, const Page& page) {
  ActionSource* first = nullptr;
  Timestamp at{};
  for (ActionSource& source : sources) {
    // Filters may skip most of them.
    const Logged* const one = source.next(std::max<std::int64_t>(page.rows_read(), 100));
    if (one == nullptr) continue;
    const bool is_before = page.is_backward() ? one->action.at > at : one->action.at < at;
    if (first != nullptr && !is_before) continue;
    first = &source;
    at = one->action.at;
  }
  return first;
}

int list_actions(Invocation& call) {
  const Arguments& arguments = call.arguments;
  if (arguments.has("--newest-first") && arguments.has("--oldest-first")) {
    throw Misuse{"--newest-first and --oldest-first exclude each other"};
  }
  const TimeRange time{arguments};
  const auto who = arguments.text("--who");
  Page page{arguments, arguments.has("--oldest-first") ? Direction::forward : Direction::backward};
  StoreSession session{call, {.only_reads = true}};
  auto sources = sources_of(session, page.direction());
  if (const auto after = arguments.text("--after")) go_to(sources, *after);
  Listing listing{call.out, logged};
  while (ActionSource* const source = next_of(sources, page)) {
    const Logged one = source->take();
    const std::string place = places_of(sources);
    const auto& end = page.is_backward() ? time.since : time.until;
    if (end && (page.is_backward() ? one.action.at < *end : one.action.at > *end)) break;
    if (!page.look(place)) break;
    if (!is_action(one) || !is_by(one, who) || !time.has(one.action.at)) continue;
    if (!page.take(place)) break;
    listing.add(one);
  }
  listing.print();
  page.tell(call.out, "rows", 0);
  return done;
}

int show_action(Invocation& call) {
  for (const char* const option :
       {"--newest-first", "--oldest-first", "--since", "--until", "--who", "--look-further"}) {
    if (call.arguments.has(option)) {
      throw Misuse{std::string{option} + " is for the list; leave it or ID out"};
    }
  }
  const auto [letter, number] = parse_id(call.arguments.operands().front());
  Page page{call.arguments, Direction::forward};
  const auto after = call.arguments.integer("--after", {0, largest});
  StoreSession session{call, {.only_reads = true}};
  std::optional<Logged> found;
  for (ActionSource& source : sources_of(session, Direction::forward)) {
    if (source.letter() != letter) continue;
    source.go_to(number - 1);
    const Logged* const one = source.next(1);
    if (one != nullptr && one->action.number == number && is_action(*one)) found = *one;
  }
  if (!found) throw Exit{not_found, "there is no such action; 'stela log' lists them"};
  std::vector<OperatorAction> steps;
  if (letter == 'o') {
    const auto most = static_cast<int>(std::min<std::int64_t>(page.rows_read(), most_looked));
    const ActionQuery query{.limit = most,
                            .after = after.value_or(0),
                            .direction = Direction::forward,
                            .items_of = number};
    for (OperatorAction& step : session.operations().actions(query)) {
      if (page.take(step.number)) steps.push_back(std::move(step));
    }
  }
  if (call.out.is_json()) {
    print_json(call.out, logged, *found, {{"steps", json_list(step_of_action, steps)}});
  } else {
    sheet_of(logged, *found).print(call.out);
    if (!steps.empty()) print_list(call.out, step_of_action, steps);
  }
  page.tell(call.out, "steps", 0);
  return done;
}

int show_log(Invocation& call) {
  return call.arguments.operands().empty() ? list_actions(call) : show_action(call);
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
  if (std::ssize(entries) == limit) {
    call.out.more({"--before", std::to_string(entries.back().number)});
  }
  return done;
}

}  // namespace

std::vector<Command> log_commands() {
  return {
      {.path = "log",
       .summary = "Show who did what, the newest first",
       .about =
           "What operators did to the outbox, projections, timers and consumers, a row for each "
           "action. Numbers are messages: how many were meant, how many it was done to, and "
           "how many weren't any more as they had been planned. An unfinished action goes on, "
           "was interrupted, or its process ended. With an ID: what that action did, step by step; "
           "the first thousand steps are kept.",
       .operands = {{"ID", "the action, as the list names it", false}},
       .options = {db_option,
                   limit_option,
                   newest_first_option,
                   {"--oldest-first", "", "oldest first"},
                   {"--after", "PLACE", "continue after this place, as the list's end names it"},
                   {"--since", "TIME",
                    "done since: 2026-11-23, 2026-11-23T10:00+02:00, or 15m for 15 minutes ago"},
                   {"--until", "TIME", "done until, given as for --since"},
                   {"--who", "NAME", "only by this operator: ann, or ann@shop"},
                   look_further_option},
       .examples = {{"what was done last", "log --limit 10"},
                    {"what ann did in the night", "log --who ann --since 8h"},
                    {"the streams of a retry", "log o12"}},
       .run = show_log},
      {.path = "changes",
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
       .run = show_changes},
  };
}

}  // namespace stela::tool

// check and why: the diagnosis of a store.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_links.hpp"
#include "commands/event_selection.hpp"
#include "commands/measures.hpp"
#include "description/finding.hpp"
#include "diagnosis/chain.hpp"
#include "diagnosis/facts.hpp"

#include <stela/eventstore/operations.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

State state_of(const std::vector<Finding>& findings) {
  return static_cast<State>(worst_of(findings));
}

void print_chain(Output& out, const Chain& chain, Timestamp now) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    out.line((i == 0 ? "" : "← ") + chain[i].sentence + age_of(chain[i], now));
    if (!chain[i].known.empty()) out.line("  " + chain[i].known);
    if (!chain[i].remedy.empty()) out.line("  → " + chain[i].remedy);
  }
}

/// If the store can't be queried, the reason becomes the finding.
Facts ask_or_tell(Invocation& call) try {
  StoreSession session{call, {.only_reads = true, .is_brief = true}};
  return ask(session, call);
} catch (const Error& e) {
  return facts_without_store(e, call);
} catch (const Exit& e) {
  // A missing file counts as a database that is down.
  if (e.code() != not_found) throw;
  return {.at = system_clock().now(),
          .call = call.app.name + ' ',
          .store_problem = e.what(),
          .store_remedy = "name the right database (db), or restore a backup of it"};
}

void print_nagios(Output& out, const std::vector<Finding>& findings) {
  std::string line = "STELA STORE " + in_capitals(worst_of(findings)) + " - ";
  std::string told;
  std::int64_t known = 0;
  for (const Finding& one : in_groups(findings)) {
    if (one.known.empty()) told.append(told.empty() ? "" : "; ").append(one.sentence);
  }
  for (const Finding& one : findings) known += one.known.empty() ? 0 : 1;
  line += told.empty() ? "nothing is wrong" : told;
  if (known > 0) line += "; known: " + std::to_string(known);
  out.line(line);
}

/// Prints a report of the diagnosis, including why there are no findings.
void print_report(Output& out, const Facts& facts, std::string_view state, const Value& findings,
                  const std::string& message) {
  const Json database{to_json({{"what", "database"},
                               {"answered", facts.last.has_value()},
                               {"since_at", {}},
                               {"error", facts.last ? "" : facts.store_problem + message}})};
  std::string asked = database.text;
  for (const Unanswered& one : facts.unanswered) {
    asked +=
        ',' +
        to_json({{"what", one.what}, {"answered", false}, {"since_at", {}}, {"error", one.why}});
  }
  if (facts.broker) {
    const auto& answer = facts.broker->connected;
    const std::string why = answer ? answer->detail : "no answer";
    asked += ',' + to_json({{"what", "broker"},
                            {"answered", facts.broker->is_connected()},
                            {"since_at", {}},
                            {"error", facts.broker->is_connected() ? std::string{} : why}});
  }
  out.json(to_json({{"as_of", as_of(facts.last, facts.at)},
                    {"asked", Json{'[' + asked + ']'}},
                    {"state", state},
                    {"findings", findings},
                    {"message", message}}));
}

std::string format_asked(const Invocation& call) {
  return call.arguments.text("--format").value_or(call.out.is_json() ? "json" : "text");
}

int check(Invocation& call) try {
  const Facts facts = ask_or_tell(call);
  const std::vector<Finding> findings = diagnose(facts);
  const std::string format = format_asked(call);
  if (format == "json") {
    print_report(call.out, facts, word_of(worst_of(findings)), json_of(findings), {});
  } else if (format == "nagios") {
    print_nagios(call.out, findings);
  } else if (format == "text") {
    if (worst_of(findings) == Severity::fine)
      call.out.line("OK: nothing is wrong" +
                    std::string{findings.empty() ? "" : " but what is known"});
    for (const Finding& one : in_groups(findings)) print_finding(call.out, one, facts.at);
  } else {
    throw Misuse{"--format is text, nagios or json"};
  }
  call.out.flush();
  return state_of(findings);
} catch (const ReaderGone&) {
  throw;
} catch (const std::exception& e) {
  const std::string why = in_one_line(e.what());
  const std::string format = format_asked(call);
  if (format == "json") {
    print_report(call.out, {.at = system_clock().now()}, "unknown", {}, why);
  } else {
    call.out.line((format == "nagios" ? "STELA STORE UNKNOWN - " : "UNKNOWN: ") + why);
  }
  return unknown;
}

/// Finds an event by its sequence or id, or the last event of a stream.
EventRange stored_event(Store& store, const std::string& what) {
  GlobalSequence sequence;
  if (!what.empty() && what.find_first_not_of("0123456789") == std::string::npos) {
    sequence = GlobalSequence{to_integer(what, "a sequence", {1, largest})};
  } else if (const auto id = Uuid::parse(what)) {
    sequence = StoreOperations{store}.find_event(*id, most_near).value_or(GlobalSequence{});
  } else {
    const StreamQuery last{.direction = Direction::backward, .limit = 1};
    return store.read_stream(StreamId::parse(what), last);
  }
  return store.read_at({{sequence}});
}

/// The message of an event. For a stream, its first pending message, or else the last event's.
std::optional<OutboxMessage> find_message(OutboxOperations& outbox, const StoredEvent& event,
                                          const std::string& what) {
  if (event.stream.name() != what) return outbox.show(event.sequence);
  const auto waiting = outbox.list({.stream = what, .limit = 1});
  return waiting.empty() ? outbox.show(event.sequence) : waiting.front();
}

Chain explain(StoreSession& session, const Facts& facts, const std::vector<Finding>& findings,
              const std::string& what) {
  Chain chain = chain_of_name(facts, findings, what);
  if (!chain.empty() || !facts.outbox) return chain;
  // An event is only valid while its range is.
  for (const StoredEvent& event : stored_event(session.store(), what)) {
    if (const auto message = find_message(session.operations(), event, what)) {
      return chain_of_message(session.operations(), *message, facts, findings);
    }
    return chain_without_message(event, facts, findings);
  }
  return {};
}

/// Counts the findings that nobody has acknowledged and that the chain doesn't contain.
std::int64_t count_others(const std::vector<Finding>& findings, const Chain& chain) {
  return std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.known.empty() &&
           std::none_of(chain.begin(), chain.end(), [&](const Finding& link) {
             return link.code == finding.code && link.subject == finding.subject;
           });
  });
}

int why(Invocation& call) try {
  const auto operands = call.arguments.operands();
  StoreSession session{call, {.only_reads = true, .is_brief = true}};
  const Facts facts = ask(session, call);
  const std::vector<Finding> findings = diagnose(facts);
  const Chain chain = operands.empty() ? chain_of_worst(findings)
                                       : explain(session, facts, findings, operands.front());
  if (chain.empty()) {
    throw Exit{not_found,
               "there is no partition, worker, projector, process, consumer, stream or "
               "publishable event '" +
                   in_one_line(operands.front()) + "'" +
                   (Uuid::parse(operands.front())
                        ? ", among the " + in_digits(most_near) + " events around its time"
                        : "")};
  }
  if (call.out.is_json()) {
    for (const Finding& link : chain) print_json(call.out, description::finding, link);
  } else {
    print_chain(call.out, chain, facts.at);
    const auto others = operands.empty() ? count_others(findings, chain) : 0;
    if (others > 0) {
      call.out.line("And " + counted(others, "other finding") + ": '" + facts.call + "check'");
    }
  }
  return state_of(chain);
} catch (const Error& e) {
  throw Exit{not_found, e.what()};
}

}  // namespace

std::vector<Command> diagnosis_commands() {
  return {
      {.path = "check",
       .summary = "Check everything in a database, for monitoring systems",
       .about =
           "Says what is wrong with the database, the outbox, its partitions and workers, "
           "projectors, timers and consumers, the worst first. Exit codes follow Nagios: 0 OK, "
           "1 warning, 2 critical, 3 unknown or wrong usage. A database that doesn't answer is "
           "critical. 'outbox check' and the like have limits of their own.",
       .options = {db_option,
                   {"--nats", "URL", "also ask this broker", "nats.url"},
                   jetstream_option,
                   prefix_option,
                   {"--format", "NAME", "text, nagios or json", "", false, "text|nagios|json"}},
       .examples = {{"every minute", "check --db shop.db --format nagios"}},
       .checks = "store",
       .run = check},
      {.path = "why",
       .summary = "Explain why something stands still, or isn't published",
       .about = "Says what is wrong and, below it, what causes that. Without a subject: the worst "
                "that is wrong. Exit codes: 0 nothing is wrong with it, 1 a warning, 2 critical, 3 "
                "not found, or the database didn't answer.",
       .operands =
           {{"SUBJECT",
             "an event's sequence or id, a stream, partition, worker, projector, process or "
             "consumer",
             false}},
       .options = {db_option,
                   {"--nats", "URL", "also ask this broker", "nats.url"},
                   jetstream_option,
                   prefix_option},
       .examples = {{"was this event published?", "why 4711 --db shop.db"},
                    {"what is wrong?", "why --db shop.db"}},
       .checks = "why",
       .run = why},
      topology_command(),
      serve_command(),
      mcp_command()};
}

}  // namespace stela::tool

// privacy report: how a person was forgotten, and since when that is certain.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/erasures.hpp"
#include "commands/privacy.hpp"
#include "key_session.hpp"

#include <stela/eventstore/detail/erasures.hpp>

namespace stela::tool {
namespace {

using description::Erasure;

std::vector<Erasure> erasures_asked(Invocation& call, Store& store) {
  const auto number = call.arguments.integer("--erasure", {1, largest});
  const auto& operands = call.arguments.operands();
  if (operands.empty() != number.has_value()) {
    throw Misuse{"either SUBJECT or --erasure says what the report is about"};
  }
  std::vector<Erasure> all;
  if (!number) {
    all = erasures_of(store, StreamId::parse(operands.front()));
  } else {
    for (const StoredEvent& event : store.read_at({{GlobalSequence{*number}}})) {
      if (auto erasure = erasure_of(store, event)) all.push_back(std::move(*erasure));
    }
  }
  if (!all.empty()) return all;
  throw Exit{not_found, number ? "event " + std::to_string(*number) + " forgets nobody"
                               : "'" + in_one_line(operands.front()) + "' wasn't forgotten"};
}

int report_erasures(Invocation& call) {
  KeySession session{call, true};
  Keys& keys = session.keys();
  StoreSession database{call, {.only_reads = true}};
  check_key_store(database.store(), keys);
  const Timestamp now = database.store().conventions().clock->now();
  std::vector<Erasure> erasures = erasures_asked(call, database.store());
  find_tombstones(keys, erasures);
  for (Erasure& erasure : erasures) {
    complete_erasure(erasure, database, keys, now);
    if (call.out.is_json()) {
      print_json(call.out, description::erasure, erasure,
                 {{"not_reached", not_reached_in_json()},
                  {"as_of", as_of(database.store().last_sequence(), now)}});
      continue;
    }
    sheet_of(description::erasure, erasure).print(call.out);
    print_list(call.out, description::erased_key, erasure.keys);
    if (!erasure.projectors.empty()) {
      print_list(call.out, description::follower, erasure.projectors);
    }
    tell_not_reached(call.out);
    if (is_on_server(call.settings().text("keys.store"))) {
      call.out.line(std::string{"- "} + kept_by_servers);
    }
  }
  return done;
}

}  // namespace

Command privacy_report_command() {
  return {
      .path = "privacy report",
      .summary = "Report how a person was forgotten",
      .about =
          "By whom, when and why; which keys; how far projectors are; since when it is certain, "
          "which is the end of the first rotation after it; and what isn't reached. The "
          "binding is the SHA-256 of the first key's id, a line feed and the subject: it names "
          "nobody, and whoever knows the subject can check it.",
      .operands = {{subject_operand_of_keys.name, subject_operand_of_keys.summary, false}},
      .options = {db_option,
                  keys_option,
                  master_option,
                  erasures_option,
                  {"--erasure", "SEQUENCE", "the event that forgets, instead of a subject"}},
      .examples = {{"for the authority", "privacy report --erasure 4711 --json"}},
      .run = report_erasures};
}

}  // namespace stela::tool

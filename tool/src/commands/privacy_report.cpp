// privacy report: how a person was forgotten, and since when that is certain.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/erasures.hpp"
#include "commands/privacy.hpp"
#include "key_session.hpp"

#include <stela/eventstore/detail/erasures.hpp>
#include <stela/eventstore/forget.hpp>

namespace stela::tool {
namespace {

using description::Erasure;

struct Asked {
  StreamId subject;
  std::vector<Erasure> erasures;
};

Asked erasure_asked(Store& store, Keys& keys, std::int64_t number) {
  for (const StoredEvent& event : store.read_at({{GlobalSequence{number}}})) {
    auto erasure = erasure_of(store, event);
    if (!erasure) break;
    Asked asked{forgotten_subject(event.stream), {std::move(*erasure)}};
    find_tombstones(keys, asked.subject, asked.erasures);
    asked.erasures.resize(1);
    return asked;
  }
  throw Exit{not_found, "event " + std::to_string(number) + " forgets nobody"};
}

Asked erasures_asked(Invocation& call, Store& store, Keys& keys) {
  const auto number = call.arguments.integer("--erasure", {1, largest});
  const auto& operands = call.arguments.operands();
  if (operands.empty() != number.has_value()) {
    throw Misuse{"either SUBJECT or --erasure says what the report is about"};
  }
  if (number) return erasure_asked(store, keys, *number);
  const StreamId subject = StreamId::parse(operands.front());
  Asked asked{subject, erasures_of(store, subject)};
  find_tombstones(keys, subject, asked.erasures);
  if (!asked.erasures.empty()) return asked;
  throw Exit{not_found, "'" + in_one_line(operands.front()) + "' wasn't forgotten"};
}

/// Why it isn't certain yet, and what is left of the person.
void tell_what_is_left(Invocation& call, const Erasure& erasure) {
  const std::string own_call = "'" + call.app.name + " privacy ";
  if (!erasure.is_destroyed()) {
    call.out.line("Not all of its keys are destroyed, or they aren't this person's: " + own_call +
                  "reapply --dry-run'.");
  } else if (!erasure.is_known) {
    call.out.line(
        "The store doesn't have it as forgotten by this event, as after an older backup of it was "
        "restored, or if the event was only imported: " +
        own_call + "reapply --dry-run'.");
  } else if (!erasure.certain_at) {
    call.out.line("It is certain once the keys are rotated: " + own_call + "rotate'.");
  }
  if (erasure.certain_at && !erasure.is_confirmed) {
    call.out.line(
        "The store knows of it from the key store, so who asked and why is only what an "
        "event says that may have been imported.");
  }
  if (erasure.living_keys > 0) {
    call.out.line("Of this person " + counted(erasure.living_keys, "key") +
                  (erasure.living_keys == 1 ? " lives: " : " live: ") + own_call + "show'.");
  }
}

int report_erasures(Invocation& call) {
  KeySession session{call, true};
  Keys& keys = session.keys();
  StoreSession database{call, {.only_reads = true}};
  check_key_store(database.store(), keys);
  const Timestamp now = database.store().conventions().clock->now();
  Asked asked = erasures_asked(call, database.store(), keys);
  for (Erasure& erasure : asked.erasures) {
    complete_erasure(erasure, database, keys, asked.subject);
    if (call.out.is_json()) {
      print_json(call.out, description::erasure, erasure,
                 {{"not_reached", not_reached_in_json()},
                  {"as_of", as_of(database.store().last_sequence(), now)}});
      continue;
    }
    sheet_of(description::erasure, erasure).print(call.out);
    tell_what_is_left(call, erasure);
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

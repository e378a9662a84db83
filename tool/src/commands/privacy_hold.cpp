// privacy hold, privacy release: what must be kept for a purpose, whoever asks to be forgotten.
#include "cli/exit.hpp"
#include "commands/event_selection.hpp"
#include "commands/privacy.hpp"
#include "key_session.hpp"
#include "store_session.hpp"

#include <stela/eventstore/erasures.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

/// The journal names no people: the newest key of this purpose instead.
std::string key_in_words(Keys& keys, const Subject& subject) {
  std::vector<KeyInfo> found = keys.keys_of(subject.name);
  std::erase_if(found, [&](const KeyInfo& key) { return key.subject.purpose != subject.purpose; });
  return found.empty() ? std::string{"no key yet"} : ids_in_words({&found.back(), 1});
}

std::string purpose_in_words(const Subject& subject) {
  return subject.purpose.empty() ? "the default purpose" : "purpose '" + subject.purpose + "'";
}

/// It may be meant for keys that are yet to be made, or mistyped.
void warn_of_unknown_purpose(Invocation& call, Keys& keys, const Subject& subject) {
  const auto found = keys.keys_of(subject.name);
  const bool is_known = std::ranges::any_of(
      found, [&](const KeyInfo& key) { return key.subject.purpose == subject.purpose; });
  if (!is_known)
    call.out.note("There is no key of this person for " + purpose_in_words(subject) + " yet.");
}

Subject subject_of(const Arguments& arguments) {
  return {StreamId::parse(arguments.operands().front()).name(),
          purpose_of(arguments.text("--purpose").value_or(""))};
}

int hold_keys(Invocation& call) {
  const Arguments& arguments = call.arguments;
  const Subject subject = subject_of(arguments);
  const std::string reason = arguments.required("--reason");
  if (reason.empty()) throw Misuse{"--reason says why: a paragraph, a file number"};
  std::optional<Timestamp> until;
  if (const auto text = arguments.text("--until")) until = to_time(*text, "--until");
  StoreSession database{call};
  if (until && *until <= database.store().conventions().clock->now()) {
    throw Misuse{"--until is a time to come; leave it out to hold until 'privacy release'"};
  }
  KeySession session{call, false};
  check_key_store(database.store(), session.keys());
  warn_of_unknown_purpose(call, session.keys(), subject);
  session.keys().hold(subject, until, reason);
  const std::string end = until ? "until " + to_string(*until) : "until it is released";
  note_privacy(call, database, "holds", key_in_words(session.keys(), subject), end);
  print_result(call.out,
               {{"subject", subject.name},
                {"purpose", subject.purpose},
                {"hold_ends_at", until},
                {"reason", reason}},
               "What is kept for " + purpose_in_words(subject) + " stays " + end + ".");
  return done;
}

int release_keys(Invocation& call) {
  const Subject subject = subject_of(call.arguments);
  StoreSession database{call};
  KeySession session{call, false};
  check_key_store(database.store(), session.keys());
  warn_of_unknown_purpose(call, session.keys(), subject);
  session.keys().release(subject);
  note_privacy(call, database, "released", key_in_words(session.keys(), subject), "");
  print_result(call.out, {{"subject", subject.name}, {"purpose", subject.purpose}},
               "What is kept for " + purpose_in_words(subject) +
                   " can be forgotten. Nothing was: '" + call.app.name + " privacy forget'.");
  return done;
}

constexpr Option purpose_option{"--purpose", "P", "what is kept for it ('default' unless given)"};

}  // namespace

Command privacy_hold_command() {
  return {
      .path = "privacy hold",
      .summary = "Keep what is kept for a purpose from being forgotten",
      .about =
          "As long as the law or a lawsuit demands. 'privacy forget' leaves it, and says so. It "
          "holds for keys that are yet to be made, too, and takes the place of a hold before "
          "it. When it has run out, nothing is forgotten by itself.",
      .operands = {subject_operand_of_keys},
      .options = {db_option,
                  keys_option,
                  master_option,
                  erasures_option,
                  purpose_option,
                  {"--until", "TIME", "2036-12-31 (default: until it is released)"},
                  {"--reason", "TEXT", "why; stored in clear, so nothing personal"}},
      .examples = {{"an invoice's address, for ten years",
                    "privacy hold guest-m1 --purpose invoices --until 2036-12-31 --reason "
                    "'tax law'"}},
      .run = hold_keys};
}

Command privacy_release_command() {
  return {.path = "privacy release",
          .summary = "End a hold",
          .operands = {subject_operand_of_keys},
          .options = {db_option, keys_option, master_option, erasures_option, purpose_option},
          .examples = {{"a lawsuit has ended", "privacy release guest-m1 --purpose invoices"}},
          .run = release_keys};
}

}  // namespace stela::tool

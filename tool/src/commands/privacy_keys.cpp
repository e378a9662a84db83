// privacy hold, release, rotate: operations on people's keys.
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/erasures.hpp"
#include "commands/privacy.hpp"
#include "event_text.hpp"
#include "key_session.hpp"

#include <stela/eventstore/detail/erasures.hpp>

#include <algorithm>
#include <filesystem>

namespace stela::tool {
namespace {

// --- hold, release

/// The journal names no people, so this names the newest key of the purpose.
std::string key_in_words(Keys& keys, const Subject& subject) {
  std::vector<KeyInfo> found = keys.keys_of(subject.name);
  std::erase_if(found, [&](const KeyInfo& key) { return key.subject.purpose != subject.purpose; });
  return found.empty() ? std::string{"no key yet"} : ids_in_words({&found.back(), 1});
}

std::string purpose_in_words(const Subject& subject) {
  return subject.purpose.empty() ? "the default purpose" : "purpose '" + subject.purpose + "'";
}

/// A hold may be meant for future keys, or be mistyped.
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

// --- rotate

/// Misuse or StoreFailed if it can't take the place of the present master key. Called before
/// anything changes.
void try_master(Invocation& call, const std::string& path) {
  if (!std::filesystem::exists(path)) {
    throw Misuse{"there is no file '" + path +
                 "'; make one: head -c 32 /dev/urandom > FILE, and chmod 600 FILE"};
  }
  const MasterKey present = key_file(call.settings().key_file("keys.master", ".master"));
  const std::vector<std::uint8_t> as_long_as_keys(56);
  key_file(path).wrap(as_long_as_keys);
  try {
    key_file(path).unwrap(present.wrap(as_long_as_keys));
  } catch (const StoreFailed&) {
    return;
  }
  throw Misuse{"'" + path +
               "' has the present master key; a new one makes earlier backups worthless"};
}

/// From the commit on only one of two files opens the key store: an operator must never be left
/// with the wrong one, wherever this ends.
void change_master(Invocation& call, Keys& keys, const std::string& path) {
  if (!call.out.tell("'" + path + "' becomes the master key now. Keep the former one, too.")) {
    throw Exit{failed, "stderr can't be written; the master key wasn't changed"};
  }
  try {
    keys.change_master(key_file(path));
  } catch (const Error& e) {
    throw Exit{failed, std::string{e.what()} +
                           "; either file may be the master key now: keep both, and try 'privacy "
                           "subjects --master FILE' with each"};
  }
  call.out.note(
      "From now on '" + path +
      "' is the master key; nothing opens the key store without it. Restart programs with it.");
}

/// Exit if something still reads former keys.
KeyRotation rotate(Invocation& call, Keys& keys) {
  ProgressBar bar{call.out, "keys"};
  KeyRotation rotation = keys.rotate(
      [&](std::int64_t wrapped, std::int64_t most) { bar.show("keys", wrapped, most); });
  bar.clear();
  if (rotation.left_over.empty()) return rotation;
  throw Exit{failed, "all keys are wrapped by key-encryption key " +
                         std::to_string(rotation.number) +
                         ", but what was forgotten isn't certain yet: " + rotation.left_over +
                         ". Rotate again once that has ended"};
}

int rotate_keys(Invocation& call) {
  KeySession session{call, false};
  Keys& keys = session.keys();
  StoreSession database{call};
  check_key_store(database.store(), keys);
  const auto new_master = call.arguments.text("--new-master");
  if (new_master) try_master(call, *new_master);
  note_privacy(call, database, "began to rotate keys", "keys", "");
  if (!call.out.is_json()) call.out.note("Wrapping all keys anew; programs run on meanwhile.");
  clear_error_texts(database.store());
  const bool is_on_server = stela::is_on_server(call.settings().text("keys.store"));
  const KeyRotation rotation = rotate(call, keys);
  if (new_master) {
    // Only now: what is gone must never have been wrapped by a master key that stays.
    change_master(call, keys, *new_master);
    note_privacy(call, database, "changed the master key", "keys", "");
    // The server's tables have the present key as the former master key wrapped it.
    if (is_on_server) rotate(call, keys);
  }
  note_privacy(call, database, "rotated keys", "keys",
               "key-encryption key " + std::to_string(rotation.number) + ", " +
                   counted(rotation.rewrapped, "key"));
  const ReappliedErasures left = reapply_erasures(database.store(), keys, true);
  if (left.to_fence > 0) {
    throw Exit{failed, "all keys are wrapped anew, but the store doesn't know of " +
                           counted(left.to_fence, "destroyed key") + ", as after a restore: '" +
                           call.app.name + " privacy reapply'"};
  }
  const std::string but = left.by_events > 0
                              ? ", but what only an imported event forgets lives: '" +
                                    call.app.name + " privacy reapply --dry-run' names it."
                              : ".";
  if (const auto again = left.to_destroy - left.by_events; again > 0) {
    throw Exit{failed, "all keys are wrapped anew, but " + counted(again, "key") +
                           " of people who were forgotten can be had again, as after a backup was "
                           "restored: '" +
                           call.app.name + " privacy reapply', and rotate again"};
  }
  if (is_on_server && !new_master) call.out.note(kept_by_servers);
  print_result(call.out,
               {{"rotation", rotation.number},
                {"rewrapped", rotation.rewrapped},
                {"began_at", rotation.began_at},
                {"certain_at", rotation.ended_at}},
               counted(rotation.rewrapped, "key") + " wrapped by key-encryption key " +
                   std::to_string(rotation.number) + ". What was forgotten before " +
                   to_string(rotation.began_at) + " is certain from " +
                   to_string(rotation.ended_at) + " on" + but);
  return done;
}

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

Command privacy_rotate_command() {
  return {.path = "privacy rotate",
          .summary = "Replace the key that all keys are wrapped by",
          .about =
              "What was forgotten before can't be had from old pages and blocks of the key "
              "store's disk afterwards. Once a week. If it is interrupted, whoever opens the "
              "keys next continues.",
          .options = {db_option,
                      keys_option,
                      master_option,
                      erasures_option,
                      {"--new-master", "FILE", "wrap the new one by this master key from now on"}},
          .examples = {{"by a timer", "privacy rotate"},
                       {"and make backups of the keys worthless",
                        "privacy rotate --new-master new.key"}},
          .run = rotate_keys};
}

}  // namespace stela::tool

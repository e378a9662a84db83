// privacy subjects, show, forget: people, and the keys of their personal data.
#include "commands/privacy.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/erasures.hpp"
#include "key_session.hpp"
#include "store_session.hpp"

#include <stela/eventstore/detail/erasures.hpp>
#include <stela/eventstore/detail/journal.hpp>
#include <stela/eventstore/forget.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

using description::ErasedKey;
using description::Erasure;
using description::Follower;
using description::LivingSubject;

constexpr std::size_t keys_at_once = 1'000;

// --- subjects

int list_destroyed(Invocation& call, Keys& keys, std::int64_t after) {
  Page page{call.arguments};
  Listing listing{call.out, description::destroyed_key};
  for (bool goes_on = true; goes_on;) {
    const auto found = keys.destroyed(after, keys_at_once);
    goes_on = !found.empty();
    if (goes_on) after = found.back().number;
    for (const DestroyedKey& key : found) {
      goes_on = goes_on && page.take(key.number);
      if (goes_on) listing.add(key);
    }
  }
  listing.print();
  page.tell(call.out, "keys", 0);
  return done;
}

int list_subjects(Invocation& call) {
  std::int64_t after = call.arguments.integer("--after", {0, largest}).value_or(0);
  KeySession session{call, true};
  Keys& keys = session.keys();
  if (call.arguments.has("--destroyed")) return list_destroyed(call, keys, after);
  Page page{call.arguments};
  Listing listing{call.out, description::living_subject};
  for (bool goes_on = true; goes_on;) {
    const auto found =
        keys.living(after, static_cast<std::size_t>(std::min(page.rows_read(), rows_at_once)));
    goes_on = !found.empty();
    for (const KeyInfo& key : found) {
      if (!goes_on) break;
      after = key.number;
      LivingSubject subject{key.subject.name, keys.keys_of(key.subject.name)};
      std::sort(subject.keys.begin(), subject.keys.end(),
                [](const KeyInfo& a, const KeyInfo& b) { return a.number < b.number; });
      // Each subject is listed once, at its oldest key.
      if (subject.keys.empty() || subject.keys.front().number != key.number) continue;
      goes_on = page.take(key.number);
      if (goes_on) listing.add(subject);
    }
  }
  listing.print();
  page.tell(call.out, "subjects", 0);
  return done;
}

// --- show

std::string in_words(const KeyStanding& standing) {
  if (standing.is_rotating) return "The keys are being rotated";
  if (standing.rotated_at) return "Keys rotated at " + to_string(*standing.rotated_at);
  return standing.rotation == 1 ? "The keys were never rotated"
                                : "The last rotation left former keys: rotate again";
}

int show_subject(Invocation& call) {
  const StreamId subject = StreamId::parse(call.arguments.operands().front());
  KeySession session{call, true};
  Keys& keys = session.keys();
  StoreSession database{call, {.only_reads = true}};
  check_key_store(database.store(), keys);
  std::vector<KeyInfo> living = keys.keys_of(subject.name());
  std::vector<Erasure> erasures = erasures_of(database.store(), subject);
  find_tombstones(keys, subject, erasures);
  if (living.empty() && erasures.empty()) {
    throw Exit{not_found, "nothing is sealed for '" + in_one_line(subject.name()) +
                              "'; 'privacy subjects' lists people"};
  }
  std::vector<ErasedKey> erased;
  for (const Erasure& one : erasures) {
    erased.insert(erased.end(), one.keys.begin(), one.keys.end());
  }
  for (Erasure& one : erasures) complete_erasure(one, database, keys, subject);
  // Opening the store with its keys destroys these again.
  const auto brought_back = static_cast<std::int64_t>(std::erase_if(
      living, [&](const KeyInfo& key) { return fence_of(database.store(), key.id).has_value(); }));
  const KeyStanding standing = keys.standing();
  const bool is_forgotten =
      brought_back > 0 || std::any_of(erased.begin(), erased.end(),
                                      [](const ErasedKey& key) { return key.destroyed_at; });
  const char* const state = !living.empty() ? "living" : is_forgotten ? "forgotten" : "unknown";
  if (call.out.is_json()) {
    call.out.json(to_json({{"subject", subject.name()},
                           {"state", state},
                           {"brought_back", brought_back},
                           {"keys", json_list(description::living_key, living)},
                           {"forgotten_keys", json_list(description::erased_key, erased)},
                           {"erasures", json_list(description::erasure, erasures)},
                           {"key_store", standing.id.to_string()},
                           {"newest_key", standing.highest},
                           {"rotation", standing.rotation},
                           {"rotated_at", standing.rotated_at},
                           {"rotating", standing.is_rotating}}));
    return done;
  }
  call.out.line(in_one_line(subject.name()) + ": " + state);
  if (!living.empty()) print_list(call.out, description::living_key, living);
  if (!erased.empty()) print_list(call.out, description::erased_key, erased);
  if (brought_back > 0) {
    call.out.line(counted(brought_back, "key") +
                  " of what was forgotten can still or again be had; '" + call.app.name +
                  " privacy reapply' destroys " + (brought_back == 1 ? "it" : "them"));
  }
  for (const Erasure& one : erasures) {
    if (one.sequence.value() == 0) {
      call.out.line(
          "Forgotten, but the store has no event of it, as after an older backup of it was "
          "restored");
      continue;
    }
    call.out.line("Forgotten at event " + std::to_string(one.sequence.value()) +
                  "; 'privacy report --erasure " + std::to_string(one.sequence.value()) +
                  "' says all of it");
  }
  call.out.line(in_words(standing));
  return done;
}

// --- forget

/// Counts the events with a value that is sealed with these keys.
std::int64_t count_sealed_events(Invocation& call, Store& store, std::span<const KeyInfo> keys) {
  const SealMarks marks{store.conventions().codec, keys};
  ProgressBar bar{call.out, "events"};
  const GlobalSequence last = store.last_sequence();
  std::int64_t events = 0;
  for (const StoredEvent& event : store.read_all({.to = last})) {
    if (event.sequence.value() % 1024 == 0) {
      bar.show("events", event.sequence.value(), last.value());
    }
    if (marks.are_in(event.payload)) ++events;
  }
  return events;
}

std::vector<KeyInfo> keys_to_forget(Keys& keys, const StreamId& subject,
                                    const std::vector<std::string>& purposes) {
  std::vector<KeyInfo> found = keys.keys_of(subject.name());
  std::erase_if(found, [&](const KeyInfo& key) {
    return !purposes.empty() &&
           std::find(purposes.begin(), purposes.end(), key.subject.purpose) == purposes.end();
  });
  const bool is_known = !found.empty();
  std::erase_if(found, [](const KeyInfo& key) { return key.hold.has_value(); });
  if (!found.empty()) return found;
  if (is_known) {
    throw Exit{failed, "all of it is held: 'privacy show' says why, and until when"};
  }
  throw Exit{not_found, "there is no living key of '" + in_one_line(subject.name()) + "'" +
                            (purposes.empty() ? "" : " for this purpose") +
                            "; 'privacy show' says what was forgotten"};
}

void tell_plan(Invocation& call, const std::vector<KeyInfo>& keys, std::int64_t events,
               const std::vector<Follower>& followers) {
  const auto behind = std::count_if(followers.begin(), followers.end(),
                                    [](const Follower& one) { return !one.has_passed; });
  print_list(call.out, description::living_key, keys);
  call.out.line(counted(std::ssize(keys), "key") + " would be destroyed, and what " +
                counted(events, "event") + (events == 1 ? " has" : " have") + " of them with it.");
  call.out.line(counted(std::ssize(followers), "projector") + " must handle it" +
                (behind > 0 ? ", of which " + counted(behind, "projector") + " are behind." : "."));
  tell_not_reached(call.out);
}

/// Opening the store with its keys completed an interrupted forgetting, or a program forgot the
/// person. Reports this, and records it in the journal, which has no entry of it.
bool was_forgotten_before(Invocation& call, StoreSession& database, Keys& keys,
                          const StreamId& subject) {
  const std::vector<Erasure> erasures = erasures_of(database.store(), subject);
  if (erasures.empty() || !keys.keys_of(subject.name()).empty()) return false;
  const GlobalSequence last = erasures.back().sequence;
  if (is_noted(database.store(), erasures.back())) return false;
  note_privacy(call, database, "found forgotten", name_in_journal(last), "");
  print_result(
      call.out, {{"dry_run", false}, {"erasure", last}},
      "Event " + std::to_string(last.value()) + " has forgotten this person, and no key is left.");
  return true;
}

int forget_subject(Invocation& call) {
  const Arguments& arguments = call.arguments;
  const StreamId subject = StreamId::parse(arguments.operands().front());
  const bool is_dry = arguments.has("--dry-run");
  ForgetOptions options{.by = arguments.text("--by").value_or(call.operator_name()),
                        .reason = arguments.required("--reason"),
                        .purposes = arguments.all("--purpose")};
  if (options.reason.empty()) throw Misuse{"--reason says why: a ticket, a paragraph"};
  KeySession session{call, is_dry};
  Keys& keys = session.keys();
  for (std::string& purpose : options.purposes) purpose = purpose_of(purpose);
  // Opening a store with keys makes them its own.
  check_key_store(StoreSession{call, {.only_reads = true}}.store(), keys);
  StoreSession database{call, {.only_reads = is_dry, .keys = is_dry ? nullptr : &keys}};
  Store& store = database.store();
  if (!is_dry && was_forgotten_before(call, database, keys, subject)) return done;
  const std::vector<KeyInfo> planned = keys_to_forget(keys, subject, options.purposes);
  const std::int64_t events = count_sealed_events(call, store, planned);
  const auto followers = followers_of(store, store.last_sequence());
  if (is_dry) {
    if (!call.out.is_json()) {
      tell_plan(call, planned, events, followers);
    } else {
      call.out.json(to_json({{"dry_run", true},
                             {"keys", json_list(description::living_key, planned)},
                             {"events", events},
                             {"projectors", json_list(description::follower, followers)},
                             {"not_reached", not_reached_in_json()}}));
    }
    return done;
  }
  if (!call.out.is_json() && !arguments.has("--yes")) tell_plan(call, planned, events, followers);
  if (!call.confirm("What " + counted(events, "event") +
                    " of this person will be gone for good, "
                    "with " +
                    counted(std::ssize(planned), "key") + ". Continue?")) {
    return failed;
  }
  database.prepare_to_append();
  const ForgetReport report = forget(store, subject, options);
  if (!report.kept.empty() && !call.out.is_json()) {
    call.out.line("Under a hold, and kept:");
    print_list(call.out, description::living_key, report.kept);
  }
  note_privacy(call, database, "forgot", name_in_journal(report.fence), ids_in_words(report.keys));
  print_result(call.out,
               {{"dry_run", false},
                {"erasure", report.fence},
                {"keys", json_list(description::living_key, report.keys)},
                {"kept", json_list(description::living_key, report.kept)},
                {"events", events},
                {"projectors", json_list(description::follower, followers)},
                {"not_reached", not_reached_in_json()}},
               counted(std::ssize(report.keys), "key") + " destroyed, by event " +
                   std::to_string(report.fence.value()) +
                   ". It is certain once the keys are rotated: '" + call.app.name +
                   " privacy rotate'.");
  return done;
}

// --- the table

Command subjects_command() {
  return {.path = "privacy subjects",
          .summary = "List people of whom something sealed is kept",
          .about =
              "With the number of their keys, what these are for, and since when there are "
              "any; in the order in which the oldest of them was made.",
          .options = {keys_option,
                      master_option,
                      erasures_option,
                      {"--destroyed", "", "the keys that were destroyed instead, by their ids"},
                      {"--after", "KEY", "continue after this key"},
                      limit_option},
          .examples = {{"the first hundred", "privacy subjects --keys shop.keys.db"}},
          .run = list_subjects};
}

Command show_command() {
  return {.path = "privacy show",
          .summary = "Show the keys of a person, and what was forgotten",
          .operands = {subject_operand_of_keys},
          .options = {db_option, keys_option, master_option, erasures_option},
          .examples = {{"a guest", "privacy show guest-m1"}},
          .run = show_subject};
}

Command forget_command() {
  return {
      .path = "privacy forget",
      .summary = "Forget a person: destroy the keys of what is personal",
      .about =
          "Appends the event stela.forgotten, then destroys the keys. If it is interrupted in "
          "between, whoever opens the store with its keys next completes it. --dry-run shows "
          "the keys, how many events they seal, the projectors that must handle it, and what "
          "isn't reached.",
      .operands = {subject_operand_of_keys},
      .options = {db_option,
                  keys_option,
                  master_option,
                  erasures_option,
                  {"--reason", "TEXT", "why: a ticket, a paragraph; nothing personal"},
                  {"--by", "WHO", "who asked for it (default: this user)"},
                  {"--purpose", "P", "only what is kept for this purpose, or 'default'", "", true},
                  dry_run_option,
                  yes_option},
      .examples = {{"what it would do", "privacy forget guest-m1 --reason 'Art. 17' --dry-run"},
                   {"but for invoices",
                    "privacy forget guest-m1 --reason 'Art. 17' --purpose default --yes"}},
      .run = forget_subject};
}

}  // namespace

SealMarks::SealMarks(Codec codec, std::span<const KeyInfo> keys) {
  for (const KeyInfo& key : keys) {
    if (codec == Codec::json) {
      marks_.push_back("\"~s1." + key.id.to_string() + '.');
      continue;
    }
    const auto& id = key.id.bytes;
    std::string& mark = marks_.emplace_back(1, '\x01');
    mark.append(reinterpret_cast<const char*>(id.data()), id.size());
  }
}

bool SealMarks::are_in(std::string_view payload) const {
  return std::any_of(marks_.begin(), marks_.end(), [&](const std::string& mark) {
    return payload.find(mark) != std::string_view::npos;
  });
}

void note_privacy(Invocation& call, StoreSession& session, const std::string& what,
                  const std::string& subject, const std::string& detail) {
  Journal{session.store()}.note({.part = std::string{part_of_privacy},
                                 .subject = subject,
                                 .what = what,
                                 .who = call.operator_name(),
                                 .detail = detail});
}

std::string ids_in_words(std::span<const KeyInfo> keys) {
  std::string text;
  for (const KeyInfo& key : keys) text += (text.empty() ? "key " : ", key ") + key.id.to_string();
  return text;
}

std::vector<Command> privacy_commands() {
  return {subjects_command(),       show_command(),           privacy_export_command(),
          privacy_hold_command(),   forget_command(),         privacy_release_command(),
          privacy_rotate_command(), privacy_report_command(), privacy_reapply_command()};
}

}  // namespace stela::tool

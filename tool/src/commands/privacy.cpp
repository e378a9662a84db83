// privacy subjects, show, forget, rotate, report, reapply: people, and the keys of what is
// personal.
#include "commands/privacy.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "console/sha256.hpp"
#include "description/privacy.hpp"
#include "key_session.hpp"
#include "store_session.hpp"

#include <stela/eventstore/erasures.hpp>
#include <stela/eventstore/forget.hpp>
#include <stela/eventstore/journal.hpp>
#include <stela/framework/codec/json_writer.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/projections/operations.hpp>

#include <algorithm>
#include <map>

namespace stela::tool {
namespace {

using description::ErasedKey;
using description::Erasure;
using description::Follower;
using description::LivingSubject;

constexpr std::size_t keys_at_once = 1'000;
/// What the journal calls it: the report looks for these.
constexpr std::string_view part_of_journal = "privacy";
constexpr std::string_view rotation_began = "began to rotate keys";
constexpr std::string_view rotation_ended = "rotated keys";

/// What no forgetting reaches, for plans and reports.
constexpr std::string_view not_reached[] = {
    "what was never sealed: names of streams, tags, actors, headers and clear columns of read "
    "models until their projectors have passed the erasure",
    "what a database keeps of rows that were deleted: on PostgreSQL dead rows, statistics and the "
    "write-ahead log, until VACUUM and ANALYZE of the tables and the end of the log; and tables of "
    "former builds of a projector until they are dropped",
    "backups that were made before: of clear columns, and of the key store with a master key that "
    "still exists",
    "texts of errors and logs that quote a value, in the database, its server and elsewhere",
    "what other programs copied: they get the event stela.forgotten",
    "values of the same person that were recorded again for another purpose",
};
/// Of a key store on a server.
constexpr const char* kept_by_servers =
    "The key server's write-ahead log, its standbys and backups have the former keys, wrapped by "
    "the master key: until those are gone, or the master key is changed (--new-master) and the "
    "former one destroyed.";

Json not_reached_in_json() {
  return json_list(not_reached, [](std::string_view text) {
    std::string out;
    json::append_string(out, text);
    return out;
  });
}
void tell_not_reached(Output& out) {
  out.line("Not reached:");
  for (const std::string_view text : not_reached) out.line("- " + std::string{text});
}

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
      // A subject is listed once, at the oldest of its keys.
      if (subject.keys.empty() || subject.keys.front().number != key.number) continue;
      goes_on = page.take(key.number);
      if (goes_on) listing.add(subject);
    }
  }
  listing.print();
  page.tell(call.out, "subjects", 0);
  return done;
}

// --- erasures

std::string binding_of(const StreamId& subject, const std::vector<ErasedKey>& keys) {
  return sha256((keys.empty() ? std::string{} : keys.front().id) + '\n' + subject.name());
}

/// Nothing if the event is another one.
std::optional<Erasure> erasure_of(Store& store, const StoredEvent& event) {
  std::optional<Erasure> erasure;
  EventDecoder<EventSet<Forgotten>> decoder{store.conventions().reading()};
  if (event.type() != Forgotten::event_type.name) return erasure;
  decoder.decode(event, [&](const Forgotten& fence) {
    erasure.emplace(Erasure{
        .sequence = event.sequence, .at = event.recorded_at, .by = fence.by, .why = fence.reason});
    for (std::size_t i = 0; i < fence.keys.size(); ++i) {
      erasure->keys.push_back(
          {fence.keys[i], i < fence.purposes.size() ? fence.purposes[i] : std::string{}});
    }
    erasure->binding = binding_of(forgotten_subject(event.stream), erasure->keys);
  });
  return erasure;
}

std::vector<Erasure> erasures_of(Store& store, const StreamId& subject) {
  std::vector<Erasure> all;
  const StreamId stream = StreamId::of(Forgotten::category, subject.name());
  for (const StoredEvent& event : store.read_stream(stream)) {
    if (auto erasure = erasure_of(store, event)) all.push_back(std::move(*erasure));
  }
  return all;
}

void find_tombstones(Keys& keys, std::vector<Erasure>& erasures) {
  std::map<std::string, ErasedKey*> wanted;
  for (Erasure& erasure : erasures) {
    for (ErasedKey& key : erasure.keys) wanted.emplace(key.id, &key);
  }
  std::int64_t after = 0;
  while (!wanted.empty()) {
    const auto found = keys.destroyed(after, keys_at_once);
    if (found.empty()) return;
    after = found.back().number;
    for (const DestroyedKey& one : found) {
      const auto key = wanted.find(one.id.to_string());
      if (key == wanted.end()) continue;
      key->second->generation = one.generation;
      key->second->destroyed_at = one.destroyed_at;
      wanted.erase(key);
    }
  }
}

std::vector<Follower> followers_of(Store& store, GlobalSequence fence) {
  std::vector<Follower> all;
  for (const ProjectorStatus& one : ProjectionOperations{store}.status()) {
    all.push_back({one.name, one.build, one.position, one.position >= fence});
  }
  return all;
}

// --- show

int show_subject(Invocation& call) {
  const StreamId subject = StreamId::parse(call.arguments.operands().front());
  KeySession session{call, true};
  Keys& keys = session.keys();
  StoreSession database{call, {.only_reads = true}};
  check_key_store(database.store(), keys);
  std::vector<KeyInfo> living = keys.keys_of(subject.name());
  std::vector<Erasure> erasures = erasures_of(database.store(), subject);
  if (living.empty() && erasures.empty()) {
    throw Exit{not_found, "nothing is sealed for '" + in_one_line(subject.name()) +
                              "'; 'privacy subjects' lists people"};
  }
  find_tombstones(keys, erasures);
  std::vector<ErasedKey> erased;
  for (const Erasure& one : erasures) {
    erased.insert(erased.end(), one.keys.begin(), one.keys.end());
  }
  // What the store has as forgotten is no more living than that, though its key be there yet.
  std::erase_if(living, [&](const KeyInfo& key) {
    return std::any_of(erased.begin(), erased.end(),
                       [&](const ErasedKey& one) { return one.id == key.id.to_string(); });
  });
  const KeyStanding standing = keys.standing();
  const char* const state = living.empty() ? "forgotten" : "living";
  if (call.out.is_json()) {
    call.out.json(to_json({{"subject", subject.name()},
                           {"state", state},
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
  for (const Erasure& one : erasures) {
    call.out.line("Forgotten at event " + std::to_string(one.sequence.value()) +
                  "; 'privacy report --erasure " + std::to_string(one.sequence.value()) +
                  "' says all of it");
  }
  call.out.line("Keys rotated at " + to_string(standing.rotated_at) +
                (standing.is_rotating ? ", and being rotated" : ""));
  return done;
}

// --- forget

/// Of how many events so many hold a value.
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

/// The journal has no entry of a forgetting that was interrupted. Opening the store with its keys
/// has completed it: says so, and notes it.
bool was_completed(Invocation& call, StoreSession& database, Keys& keys, const StreamId& subject) {
  const std::vector<Erasure> erasures = erasures_of(database.store(), subject);
  if (erasures.empty() || !keys.keys_of(subject.name()).empty()) return false;
  const std::string last = "erasure " + std::to_string(erasures.back().sequence.value());
  JournalQuery query{.limit = static_cast<int>(keys_at_once), .direction = Direction::forward};
  for (auto entries = Journal{database.store()}.entries(query); !entries.empty();
       entries = Journal{database.store()}.entries(query)) {
    query.after = entries.back().number;
    for (const JournalEntry& one : entries) {
      if (one.part == part_of_journal && one.subject == last) return false;
    }
  }
  note_privacy(call, database, "forgot", last, "after an interruption");
  print_result(call.out, {{"dry_run", false}, {"erasure", erasures.back().sequence}},
               "It had been interrupted, and is complete now: event " +
                   std::to_string(erasures.back().sequence.value()) + ".");
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
  StoreSession database{call, {.only_reads = is_dry, .keys = is_dry ? nullptr : &keys}};
  Store& store = database.store();
  check_key_store(store, keys);
  if (!is_dry && was_completed(call, database, keys, subject)) return done;
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
  note_privacy(call, database, "forgot", "erasure " + std::to_string(report.fence.value()),
               ids_in_words(report.keys));
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

// --- rotate

/// Before anything is changed: StoreFailed if it isn't a master key.
void try_master(const std::string& path) {
  key_file(path).wrap(std::vector<std::uint8_t>(1));
}

int rotate_keys(Invocation& call) {
  KeySession session{call, false};
  Keys& keys = session.keys();
  StoreSession database{call};
  check_key_store(database.store(), keys);
  const auto new_master = call.arguments.text("--new-master");
  if (new_master) try_master(*new_master);
  note_privacy(call, database, std::string{rotation_began}, "keys", "");
  if (!call.out.is_json())
    call.out.note("Wrapping all keys anew; the store can be used meanwhile.");
  ProgressBar bar{call.out, "keys"};
  const KeyRotation rotation = keys.rotate(
      [&](std::int64_t wrapped, std::int64_t most) { bar.show("keys", wrapped, most); });
  bar.clear();
  if (new_master) {
    keys.change_master(key_file(*new_master));
    note_privacy(call, database, "changed the master key", "keys", "");
  }
  if (!rotation.left_over.empty()) {
    throw Exit{failed, "all keys are wrapped by key-encryption key " +
                           std::to_string(rotation.number) +
                           ", but what was forgotten isn't certain yet: " + rotation.left_over +
                           "; rotate again when that has ended"};
  }
  note_privacy(call, database, std::string{rotation_ended}, "keys",
               "key-encryption key " + std::to_string(rotation.number) + ", " +
                   counted(rotation.rewrapped, "key"));
  if (is_on_server(call.settings().text("keys.store")) && !new_master) {
    call.out.note(kept_by_servers);
  }
  print_result(call.out,
               {{"rotation", rotation.number},
                {"rewrapped", rotation.rewrapped},
                {"began_at", rotation.began_at},
                {"certain_at", rotation.ended_at}},
               counted(rotation.rewrapped, "key") + " wrapped by key-encryption key " +
                   std::to_string(rotation.number) + ". What was forgotten before " +
                   to_string(rotation.began_at) + " is certain from " +
                   to_string(rotation.ended_at) + " on.");
  return done;
}

// --- report

/// The end of the first rotation that began after it, as far as that is known.
std::optional<Timestamp> certain_since(Store& store, const KeyStanding& standing,
                                       Timestamp destroyed, Timestamp now) {
  JournalQuery query{.limit = static_cast<int>(keys_at_once), .direction = Direction::forward};
  bool has_begun = false;
  while (true) {
    const auto entries = Journal{store}.entries(query);
    if (entries.empty()) break;
    query.after = entries.back().number;
    for (const JournalEntry& one : entries) {
      if (one.part != part_of_journal) continue;
      if (one.what == rotation_began) has_begun = one.at > destroyed;
      if (one.what == rotation_ended && has_begun) return one.at;
    }
  }
  // By a program, which the journal doesn't have: it had ended by now.
  const bool by_program = !has_begun && standing.rotated_at > destroyed && !standing.is_rotating;
  return by_program ? std::optional{now} : std::nullopt;
}

std::string publication_of_erasure(StoreSession& session, GlobalSequence sequence) try {
  if (!session.has_outbox()) return {};
  const auto message = session.operations().show(sequence);
  return message ? std::string{to_string(message->state)} : std::string{};
} catch (const Exit&) {
  // Only the application knows this outbox.
  return {};
}

void complete_erasure(Erasure& erasure, StoreSession& database, Keys& keys, Timestamp now) {
  erasure.projectors = followers_of(database.store(), erasure.sequence);
  erasure.publication = publication_of_erasure(database, erasure.sequence);
  if (!erasure.is_destroyed()) return;
  Timestamp destroyed = erasure.at;
  for (const ErasedKey& key : erasure.keys) destroyed = std::max(destroyed, *key.destroyed_at);
  erasure.certain_at = certain_since(database.store(), keys.standing(), destroyed, now);
}

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

// --- reapply

int reapply(Invocation& call) {
  const bool is_dry = call.arguments.has("--dry-run");
  KeySession session{call, true};
  // Without its keys: opening it with them does all of this.
  StoreSession database{call, {.only_reads = is_dry}};
  ReappliedErasures planned = reapply_erasures(database.store(), session.keys(), true);
  const std::vector<std::string> problems = session.keys().erasure_problems();
  for (const std::string& problem : problems) call.out.note(in_one_line(problem));
  std::string text = counted(planned.to_destroy, "key") + " that the store has as forgotten, and " +
                     counted(planned.to_fence, "key") + " that only the key store has";
  if (!is_dry) {
    if (!call.confirm("Forget again: " + text + ", and what the file of erasures has. Continue?")) {
      return failed;
    }
    KeySession writing{call, false};
    planned = reapply_erasures(database.store(), writing.keys(), false);
    planned.to_destroy += static_cast<std::int64_t>(writing.keys().destroyed_again());
    note_privacy(call, database, "applied erasures again", "keys",
                 std::to_string(planned.to_destroy) + " destroyed, " +
                     std::to_string(planned.to_fence) + " fenced");
    text = counted(planned.to_destroy, "key") + " destroyed again, and " +
           counted(planned.to_fence, "key") + " fenced again in the store";
    if (planned.to_fence > 0) {
      call.out.note(
          "Nobody can say whose these were: rebuild projectors that keep personal data "
          "in clear.");
    }
  }
  print_result(call.out,
               {{"dry_run", is_dry},
                {"destroyed", planned.to_destroy},
                {"fenced", planned.to_fence},
                {"problems", std::ssize(problems)}},
               (is_dry ? "Would forget again: " : "") + text + '.');
  return problems.empty() ? done : failed;
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

Command rotate_command() {
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

Command report_command() {
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

Command reapply_command() {
  return {.path = "privacy reapply",
          .summary = "Forget again what a restored backup brought back",
          .about =
              "Compares the store, the key store and the file of erasures, and destroys and "
              "fences what one of them has as forgotten. Opening a store with its keys does "
              "this when it notices; --dry-run says what the store and the key store have.",
          .options = {db_option, keys_option, master_option, erasures_option, dry_run_option,
                      yes_option},
          .examples = {{"after a restore", "privacy reapply --dry-run"}},
          .run = reapply};
}

}  // namespace

SealMarks::SealMarks(Codec codec, std::span<const KeyInfo> keys) {
  for (const KeyInfo& key : keys) {
    if (codec == Codec::json) {
      marks_.push_back("\"~s1." + key.id.to_string() + '.');
      continue;
    }
    const auto& id = key.id.bytes;
    marks_.push_back('\x01' + std::string{reinterpret_cast<const char*>(id.data()), id.size()});
  }
}

bool SealMarks::are_in(std::string_view payload) const {
  return std::any_of(marks_.begin(), marks_.end(), [&](const std::string& mark) {
    return payload.find(mark) != std::string_view::npos;
  });
}

void note_privacy(Invocation& call, StoreSession& session, const std::string& what,
                  const std::string& subject, const std::string& detail) {
  Journal{session.store()}.note({.part = std::string{part_of_journal},
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
  return {subjects_command(),     show_command(),   privacy_export_command(),
          privacy_hold_command(), forget_command(), privacy_release_command(),
          rotate_command(),       report_command(), reapply_command()};
}

}  // namespace stela::tool

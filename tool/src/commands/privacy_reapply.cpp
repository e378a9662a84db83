// privacy reapply: forgets again what a restored backup brought back.
#include "broker.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/erasures.hpp"
#include "commands/privacy.hpp"
#include "key_session.hpp"

#include <stela/eventstore/detail/erasures.hpp>
#include <stela/eventstore/forget.hpp>
#include <stela/framework/error.hpp>
#include <stela/nats/detail/stream_reader.hpp>

#include <algorithm>
#include <set>

namespace stela::tool {
namespace {

/// An erasure from a broker's message. Anybody who may publish there may have written it.
struct Published : description::Erasure {
  std::string message = {};
  std::string subject = {};
  /// Its living keys that no earlier message had, and keys that were never here.
  std::vector<KeyInfo> living = {};
  std::vector<KeyId> unknown = {};
  /// Why it is skipped.
  std::string problem = {};
};
struct AllPublished {
  std::int64_t messages = 0;
  std::int64_t skipped = 0;
  std::int64_t odd = 0;
  /// Erasures with living keys, and the first hundred of the odd ones.
  std::vector<Published> shown = {};
  std::vector<KeyInfo> living = {};
  std::set<KeyId> seen = {};
};

std::string in_words(const std::vector<KeyId>& ids) {
  std::string text;
  for (const KeyId& id : ids) text += (text.empty() ? "" : " ") + id.to_string();
  return text;
}

constexpr Field<Published> published_fields[] = {
    field<&Published::message>("message", {.kind = Kind::untrusted}),
    field<&Published::subject>("subject", {.kind = Kind::untrusted}),
    field<[](const Published& one) { return unless_empty(one.at); }>("at"),
    field<&Published::by>("by", {.kind = Kind::untrusted, .most = 30}),
    field<&Published::why>("why", {.kind = Kind::untrusted, .most = 30}),
    field<[](const Published& one) { return std::ssize(one.living); }>("keys",
                                                                       {.kind = Kind::count}),
    field<[](const Published& one) { return in_words(one.unknown); }>("unknown_keys", {.most = 30}),
    field<&Published::problem>("problem", {.kind = Kind::untrusted, .most = 60}),
};
constexpr Description<Published> published{
    published_fields, {.table = "message subject at by why keys unknown_keys problem"}};

/// Reads the erasure. Returns what is wrong with it, or an empty text.
std::string read_erasure(Store& store, const BrokerEvent& found, Published& one) try {
  if (found.event == nullptr) return std::string{found.problem};
  if (found.store_id != store.id().to_string()) {
    return "it is of store " + std::string{found.store_id};
  }
  one.subject = forgotten_subject(found.event->stream).name();
  const auto erasure = erasure_of(store, *found.event);
  if (!erasure) return "it forgets nobody";
  static_cast<description::Erasure&>(one) = *erasure;
  return {};
} catch (const Error& e) {
  return e.what();
}

/// Looks up its keys. Returns what is wrong with them, or an empty text.
std::string look_up(Keys& keys, const std::set<KeyId>& seen, Published& one) {
  constexpr std::size_t most_keys = 1'000;
  if (one.keys.size() > most_keys) return "it names " + std::to_string(one.keys.size()) + " keys";
  std::set<KeyId> ids;
  for (const description::ErasedKey& key : one.keys) {
    const auto id = KeyId::parse(key.id);
    if (!id) return "'" + key.id.substr(0, 30) + "' isn't the id of a key";
    ids.insert(*id);
  }
  std::vector<KeyInfo> living = keys.keys_of(one.subject);
  std::erase_if(living, [&](const KeyInfo& key) { return !ids.erase(key.id); });
  if (std::any_of(living.begin(), living.end(), [](const KeyInfo& key) { return key.hold; })) {
    return "a hold keeps it: 'privacy release' comes first, if that has ended";
  }
  for (const KeyId& id : ids) {
    try {
      if (keys.find(id)) return "key " + id.to_string() + " is of somebody else";
    } catch (const KeyMissing&) {
      one.unknown.push_back(id);
    }
  }
  std::erase_if(living, [&](const KeyInfo& key) { return seen.contains(key.id); });
  one.living = std::move(living);
  return {};
}

void take(Store& store, Keys& keys, const BrokerEvent& found, AllPublished& all) {
  constexpr std::int64_t most_odd = 100;
  Published one;
  one.message = std::string{found.broker_stream} + " #" + std::to_string(found.broker_sequence);
  one.problem = read_erasure(store, found, one);
  if (one.problem.empty()) one.problem = look_up(keys, all.seen, one);
  ++all.messages;
  all.skipped += one.problem.empty() ? 0 : 1;
  const bool is_odd = !one.problem.empty() || !one.unknown.empty();
  if (is_odd) ++all.odd;
  for (const KeyInfo& key : one.living) all.seen.insert(key.id);
  all.living.insert(all.living.end(), one.living.begin(), one.living.end());
  if (!one.living.empty() || (is_odd && all.odd <= most_odd)) all.shown.push_back(std::move(one));
}

/// Includes all generations, because retired streams may have messages that no other stream has.
std::set<PartitionId> all_partitions(const OutboxStatus& status) {
  std::set<PartitionId> all;
  for (const GenerationStatus& generation : status.generations) {
    const int count = status.fence == Fence::none ? 1 : generation.partition_count;
    for (int i = 0; i < count; ++i) all.insert(PartitionId::at(i, count));
  }
  return all;
}

AllPublished read_broker(Invocation& call, StoreSession& session, Keys& keys) {
  const OutboxStatus status = session.operations().status();
  auto options = broker_options(call.settings(), status.fence, session.partitioner());
  // Makes a missing stream count as empty. Nothing is created.
  options.ensure_stream = true;
  nats::StreamReader broker{options};
  AllPublished all;
  for (const PartitionId partition : all_partitions(status)) {
    std::vector<std::uint64_t> places;
    broker.read(partition, [&](const FoundMessage& message) {
      if (message.type == Forgotten::event_type.name) places.push_back(message.broker_sequence);
    });
    broker.fetch(partition, places,
                 [&](const BrokerEvent& found) { take(session.store(), keys, found, all); });
  }
  if (broker.has_found_a_stream()) return all;
  throw Exit{failed, "the broker has no JetStream stream of this outbox; is nats.stream right?"};
}

void tell(Output& out, const AllPublished& all) {
  if (all.shown.empty()) return;
  print_list(out, published, all.shown);
  if (!all.living.empty()) print_list(out, description::living_key, all.living);
  out.note(
      "Whoever may publish to the broker can write such messages: is it what you know? Remove one "
      "that isn't from its stream ('nats stream rmm STREAM NUMBER'), and look again.");
}

/// " by events 11 and 12 …": the erasures of a person to examine.
std::string by_events(const ReappliedErasures& known) {
  constexpr std::ptrdiff_t most_named = 10;
  std::string text;
  for (const GlobalSequence event : known.events) {
    if (&event - known.events.data() == most_named) return text + " …";
    text += (text.empty() ? "" : ", ") + std::to_string(event.value());
  }
  if (text.empty()) return text;
  return (known.events.size() > 1 ? " by events " : " by event ") + text +
         " (imported: 'events show' says of whom)";
}

std::string in_words(const ReappliedErasures& known, const AllPublished& all) {
  const std::string text = counted(known.to_destroy, "key") + " to destroy" + by_events(known) +
                           ", " + counted(known.to_fence, "key") + " to be noted in the store";
  if (all.messages == 0) return text;
  return text + ", and " + counted(std::ssize(all.living), "key") + " by " +
         counted(all.messages, "message") + " at the broker, " + in_digits(all.skipped) +
         " passed over";
}

int reapply(Invocation& call) {
  const bool is_dry = call.arguments.has("--dry-run");
  KeySession session{call, true};
  // Opened without its keys, because opening it with them reapplies the erasures.
  StoreSession database{call, {.only_reads = is_dry}};
  ReappliedErasures planned = reapply_erasures(database.store(), session.keys(), true);
  AllPublished all;
  if (call.arguments.has("--from-broker")) all = read_broker(call, database, session.keys());
  const std::vector<std::string> problems = session.keys().erasure_problems();
  for (const std::string& problem : problems) call.out.note(in_one_line(problem));
  if (!call.out.is_json()) tell(call.out, all);
  std::string text = in_words(planned, all);
  if (!is_dry) {
    if (!call.confirm("Forget again: " + text + ", and what the file of erasures has. Continue?")) {
      return failed;
    }
    KeySession writing{call, false};
    const std::vector<KeyId> ids{all.seen.begin(), all.seen.end()};
    const std::int64_t fenced = fence_keys(database.store(), ids);
    planned = reapply_erasures(database.store(), writing.keys(), false);
    planned.to_destroy += static_cast<std::int64_t>(writing.keys().destroyed_again());
    planned.to_fence += fenced;
    for (const Published& one : all.shown) {
      if (one.living.empty()) continue;
      note_privacy(call, database, "forgot as the broker says", one.message,
                   ids_in_words(one.living));
    }
    note_privacy(call, database, "applied erasures again", "keys",
                 std::to_string(planned.to_destroy) + " destroyed, " +
                     std::to_string(planned.to_fence) + " fenced");
    text = counted(planned.to_destroy, "key") + " destroyed again, and " +
           counted(planned.to_fence, "key") + " noted in the store";
    if (all.skipped > 0) text += "; " + counted(all.skipped, "message") + " passed over";
    if (planned.to_fence > 0) {
      call.out.note(
          "No event tells projectors whose these were: rebuild those that keep personal data "
          "in clear.");
    }
  }
  print_result(call.out,
               {{"dry_run", is_dry},
                {"destroyed", planned.to_destroy},
                {"fenced", planned.to_fence},
                {"problems", std::ssize(problems)},
                {"messages", all.messages},
                {"skipped", all.skipped},
                {"published", json_list(published, all.shown)}},
               (is_dry ? "Would forget again: " : "") + text + '.');
  return problems.empty() ? done : failed;
}

}  // namespace

Command privacy_reapply_command() {
  return {.path = "privacy reapply",
          .summary = "Forget again what a restored backup brought back",
          .about =
              "Compares the store, the key store and the file of erasures, and destroys and "
              "fences what one of them has as forgotten. Opening a store with its keys does "
              "this when it notices; --dry-run says what the store and the key store have. "
              "--from-broker is for when all three are lost, or of one old backup: it reads the "
              "published events stela.forgotten of this store from JetStream, shows them, and "
              "forgets the keys that they name. Whoever may publish can write such messages: "
              "look at them before you agree.",
          .options = {db_option,
                      keys_option,
                      master_option,
                      erasures_option,
                      {"--from-broker", "", "also what was published"},
                      {"--nats", "URL", "the broker", "nats.url"},
                      jetstream_option,
                      prefix_option,
                      dry_run_option,
                      yes_option},
          .examples = {{"after a restore", "privacy reapply --dry-run"},
                       {"after all of it was restored from one backup",
                        "privacy reapply --from-broker --stream SHOP --dry-run"}},
          .run = reapply};
}

}  // namespace stela::tool

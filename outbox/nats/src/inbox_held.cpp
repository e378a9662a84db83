#include "inbox_held.hpp"

#include "inbox_sql/failures.hpp"
#include "inbox_sql/held.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stela::nats {

namespace sql = inbox::sql;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

namespace {

/// What waits for what is on its way, beyond its patience, is looked at so often.
constexpr milliseconds look_again{1'000};
constexpr std::size_t most_watched = 100'000;
/// So many messages behind the first of a stream are looked at with it.
constexpr std::int64_t most_looked_behind = 1'000;
/// After so many times its patience it doesn't wait for what the broker says is on its way: servers
/// count what was deleted before it was acknowledged.
constexpr int longest_patience = 10;

/// A row of due_held or held_after.
template <class Row>
HeldMessage read_message(const Row& row) {
  return {.number = row.held(),
          .source = std::string{row.source()},
          .stream = std::string{row.stream()},
          .version = StreamVersion{row.version()},
          .previous = StreamVersion{row.previous()},
          .event_id = std::string{row.event_id()},
          .broker_sequence = static_cast<std::uint64_t>(row.broker_sequence()),
          .size = row.size(),
          .is_released = row.wish().has_value(),
          .is_to_skip = row.wish() == "skip"};
}

/// Whether nothing before the message is on its way, or nobody waits for that any longer.
bool is_over(const HeldMessage& message, OnTheirWay::Steady since, bool is_too_long,
             const OnTheirWay& broker) {
  if (broker.others_settled_at < since) return is_too_long && !broker.are_others_moving;
  return broker.settled_through >= message.broker_sequence || is_too_long;
}

void schedule(database::Connection& connection, std::int64_t message,
              std::optional<Timestamp> due) {
  connection.run(sql::schedule_held{.held = message, .due_at = due});
}

}  // namespace

struct HeldStore::Head {
  HeldMessage message;
  bool is_behind_another = false;
  bool is_behind_failure = false;
  bool is_behind_gap = false;
  /// The first that is met of a stream whose beginning the consumer doesn't get.
  bool is_first_of_many = false;
};

std::optional<Timestamp> HeldStore::next_due(std::string_view broker_stream) const {
  std::optional<Timestamp> due;
  store_.database().read([&](database::Connection& connection) {
    auto next =
        connection.rows(sql::next_due_held{.consumer = consumer_, .broker_stream = broker_stream});
    if (next.step()) due = next.due_at();
  });
  return due;
}

std::int64_t HeldStore::count_streams() const {
  std::int64_t count = 0;
  store_.database().read([&](database::Connection& connection) {
    auto held = connection.rows(sql::count_held_streams{.consumer = consumer_});
    held.step();
    count = held.streams();
  });
  return count;
}

Claimed HeldStore::claim(const Claiming& rules) {
  Claimed claimed;
  store_.database().write(
      [&](database::Connection& connection) {
        claimed = {};
        const Timestamp now = store_.database().now();
        const std::vector<Head> heads = due_heads(connection, rules, now);
        // Each stream has its share.
        const auto share = rules.most / std::max<std::int64_t>(std::ssize(heads), 1);
        for (const Head& head : heads) {
          if (!is_ready(connection, head, rules, now, claimed)) continue;
          drop_failures(connection, head, claimed);
          claim_run(connection, head, rules, std::max<std::int64_t>(share, 1), now, claimed);
        }
      },
      database::Sync::if_shared);
  return claimed;
}

std::vector<HeldStore::Head> HeldStore::due_heads(database::Connection& connection,
                                                  const Claiming& rules, Timestamp now) const {
  std::vector<Head> heads;
  auto due = connection.rows(sql::due_held{
      .consumer = consumer_, .broker_stream = rules.broker_stream, .now = now, .most = rules.most});
  while (due.step()) {
    Head head{.message = read_message(due)};
    head.is_behind_another = due.is_behind_another();
    head.is_behind_failure = due.is_behind_failure();
    const std::optional<std::int64_t> position = due.position();
    const bool is_after_more =
        rules.is_whole && head.message.previous.value() > position.value_or(0);
    head.is_behind_gap = is_after_more && (position || rules.has_whole_history);
    head.is_first_of_many = is_after_more && !head.is_behind_gap;
    heads.push_back(std::move(head));
  }
  return heads;
}

bool HeldStore::is_ready(database::Connection& connection, const Head& head, const Claiming& rules,
                         Timestamp now, Claimed& claimed) {
  const HeldMessage& message = head.message;
  if (head.is_behind_another) {
    schedule(connection, message.number, {});
    return false;
  }
  const bool waits = head.is_behind_failure || head.is_behind_gap;
  if ((!waits && !head.is_first_of_many) || message.is_released) return true;
  const milliseconds patience = waits ? rules.patience : 0ms;
  const std::optional<Timestamp> again = waits_until(connection, message, patience, rules, now);
  if (!again) return true;
  if (*again == now) claimed.wants_to_ask = true;
  schedule(connection, message.number, again);
  look_behind(connection, message, rules, now);
  return false;
}

/// When it should be looked at again: at `now`, once the broker was asked. Unset: what is missing
/// before it isn't waited for any longer.
std::optional<Timestamp> HeldStore::waits_until(database::Connection& connection,
                                                const HeldMessage& message, milliseconds patience,
                                                const Claiming& rules, Timestamp now) {
  const auto [since, looked, waited] = look_at(connection, message, rules, now);
  // Another process may have watched for longer: it has its turn before the patience is over.
  if (waited < patience) return now + std::min(patience - waited, look_meanwhile);
  if (!rules.on_their_way) return now;
  const bool is_too_long = waited >= longest_patience * rules.patience;
  if (is_over(message, since, is_too_long, *rules.on_their_way)) return {};
  return now + look_again;
}

/// What is missing further on in the stream is waited for at the same time.
void HeldStore::look_behind(database::Connection& connection, const HeldMessage& first,
                            const Claiming& rules, Timestamp now) {
  StreamVersion last = first.version;
  for (const HeldMessage& message : held_behind(connection, first, rules, most_looked_behind)) {
    if (message.previous > last) look_at(connection, message, rules, now);
    last = message.version;
  }
}

/// Those of another stream at the broker are others' to take up.
std::vector<HeldMessage> HeldStore::held_behind(database::Connection& connection,
                                                const HeldMessage& first, const Claiming& rules,
                                                std::int64_t most) const {
  std::vector<HeldMessage> held;
  auto after = connection.rows(sql::held_after{.consumer = consumer_,
                                               .source = first.source,
                                               .stream = first.stream,
                                               .version = first.version.value(),
                                               .most = most});
  while (after.step() && after.broker_stream() == rules.broker_stream) {
    held.push_back(read_message(after));
  }
  return held;
}

/// They were going to come from the broker again, and didn't.
void HeldStore::drop_failures(database::Connection& connection, const Head& head,
                              Claimed& claimed) const {
  if (!head.is_behind_failure) return;
  const HeldMessage& message = head.message;
  auto dropped = connection.rows(sql::delete_failures_before{.consumer = consumer_,
                                                             .source = message.source,
                                                             .stream = message.stream,
                                                             .version = message.version.value()});
  while (dropped.step()) {
    claimed.lost.push_back({message.source, message.stream, StreamVersion{dropped.version()},
                            std::string{dropped.error()}, head.is_behind_gap});
  }
}

/// Up to one that still waits for what is missing before it.
void HeldStore::claim_run(database::Connection& connection, const Head& head, const Claiming& rules,
                          std::int64_t most, Timestamp now, Claimed& claimed) {
  HeldMessage first = head.message;
  first.is_released = first.is_released || head.is_behind_gap || head.is_first_of_many;
  if (!claim_one(connection, std::move(first), rules, now, claimed) || most == 1) return;
  StreamVersion last = head.message.version;
  for (HeldMessage& message : held_behind(connection, head.message, rules, most - 1)) {
    if (rules.is_whole && message.previous > last) {
      if (waits_until(connection, message, rules.patience, rules, now)) return;
      message.is_released = true;
    }
    last = message.version;
    if (!claim_one(connection, std::move(message), rules, now, claimed)) return;
  }
}

/// False if there is no room for it.
bool HeldStore::claim_one(database::Connection& connection, HeldMessage message,
                          const Claiming& rules, Timestamp now, Claimed& claimed) const {
  const auto bytes =
      std::accumulate(claimed.messages.begin(), claimed.messages.end(), message.size,
                      [](std::int64_t sum, const HeldMessage& each) { return sum + each.size; });
  if (!claimed.messages.empty() && bytes > rules.most_bytes) return false;
  if (std::ssize(claimed.messages) >= rules.most) return false;
  auto claim =
      connection.rows(sql::claim_held{.held = message.number, .due_at = now + rules.lease});
  claim.step();
  message.claims = claim.claims();
  claim.run();
  claimed.messages.push_back(std::move(message));
  return true;
}

HeldStore::Steady HeldStore::steady_now() const {
  return store_.database().clock().steady_now();
}

bool HeldStore::watch(std::string_view event_id) {
  // What was handled meanwhile is forgotten by and by.
  if (watched_.size() >= most_watched) watched_.clear();
  const Steady now = steady_now();
  return watched_.try_emplace(std::string{event_id}, Watch{now, now}).second;
}

/// A process adds the steady time that it saw pass to what was noted when it looked last: what
/// others noted meanwhile isn't counted twice.
HeldStore::Watch HeldStore::look_at(database::Connection& connection, const HeldMessage& message,
                                    const Claiming& rules, Timestamp now) {
  const bool is_new = watch(message.event_id);
  Watch& watch = watched_.at(message.event_id);
  const Steady looked = std::exchange(watch.looked, steady_now());
  watch.waited += std::chrono::floor<milliseconds>(watch.looked - looked);
  // Nobody knows better than the wall clock how long nobody looked.
  const milliseconds unseen = is_new ? std::min(rules.patience / 4, look_meanwhile) : 0ms;
  auto noted = connection.rows(sql::note_wait{.held = message.number,
                                              .now = now,
                                              .waited = watch.waited.count(),
                                              .unseen = unseen.count()});
  noted.step();
  watch.waited = milliseconds{noted.waited()};
  noted.run();
  return watch;
}

void HeldStore::bring_forward(std::string_view broker_stream, milliseconds longest) {
  store_.database().write(
      [&](database::Connection& connection) {
        connection.run(sql::bring_held_forward{.consumer = consumer_,
                                               .broker_stream = broker_stream,
                                               .latest = store_.database().now() + longest});
      },
      database::Sync::none);
}

void HeldStore::unclaim(const std::vector<std::int64_t>& messages, Timestamp due) {
  store_.database().write(
      [&](database::Connection& connection) {
        for (const std::int64_t message : messages) {
          connection.run(sql::unclaim_held{.held = message, .due_at = due});
        }
      },
      database::Sync::none);
}

}  // namespace stela::nats

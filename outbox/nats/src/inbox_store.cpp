#include "inbox_store.hpp"

#include "inbox_sql.hpp"
#include "inbox_sql/consumers.hpp"
#include "inbox_sql/failures.hpp"
#include "inbox_sql/gaps.hpp"
#include "inbox_sql/handled.hpp"
#include "inbox_sql/held.hpp"

#include <stela/nats/inbox.hpp>

#include <algorithm>

namespace stela::nats {

namespace sql = inbox::sql;
namespace {

constexpr std::int64_t purged_at_once = 1'000;
/// How far a producer's clock may be ahead of this one.
constexpr std::chrono::minutes clocks_differ{1};

std::string_view bytes_of(const Uuid& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()};
}

/// The last version of the stream that the consumer has met.
std::optional<std::int64_t> position_of(database::Connection& connection, const InboxKey& key) {
  auto found = connection.rows(of_stream<sql::find_position>(key));
  if (!found.step()) return {};
  return found.version();
}

/// The first message of the stream that is held is due now.
void wake_first_held(database::Connection& connection, const InboxKey& key, Timestamp now) {
  connection.run(sql::wake_first_held{
      .consumer = key.consumer, .source = key.source, .stream = key.stream, .due_at = now});
}

}  // namespace

void migrate_inbox(Store& store) {
  store.database().migrate("inbox", sql::migrations, sql::migrations_on_postgres);
}

InboxStore::InboxStore(Store& store, const std::string& consumer) : store_{store} {
  migrate_inbox(store);
  store.database().write([&](database::Connection& connection) {
    connection.run(sql::insert_consumer{.name = consumer, .created_at = now()});
    auto found = connection.rows(sql::find_consumer{.name = consumer});
    found.step();
    consumer_ = found.consumer();
    found.run();
    connection.run(sql::wake_forgotten_heads{.consumer = consumer_, .now = now()});
  });
  held_.emplace(store, consumer_);
}

InboxKey InboxStore::key_of(const ReceivedEvent& event) const {
  return {.consumer = consumer_,
          .source = event.store_id,
          .stream = event.stream.name(),
          .version = event.version.value()};
}

InboxKey InboxStore::key_of(const HeldMessage& message) const {
  return {.consumer = consumer_,
          .source = message.source,
          .stream = message.stream,
          .version = message.version.value()};
}

void InboxStore::begin(database::Connection& connection) {
  auto has = connection.rows(sql::has_failures{.consumer = consumer_});
  has.step();
  has_trouble_ = has.found();
  troubles_.clear();
}

bool InboxStore::has_trouble(database::Connection& connection, const InboxKey& key) const {
  if (!has_trouble_) return false;
  const auto [at, is_new] =
      troubles_.try_emplace({std::string{key.source}, std::string{key.stream}});
  if (is_new) {
    auto has = connection.rows(of_stream<sql::has_trouble>(key));
    has.step();
    at->second = has.found();
  }
  return at->second;
}

void InboxStore::note_trouble(const InboxKey& key) {
  has_trouble_ = true;
  troubles_[{std::string{key.source}, std::string{key.stream}}] = true;
}

std::optional<StreamVersion> InboxStore::first_held(database::Connection& connection,
                                                    const ReceivedEvent& event) const {
  auto first = connection.rows(of_stream<sql::first_held>(key_of(event)));
  if (!first.step()) return {};
  return StreamVersion{first.version()};
}

InboxStore::Arrival InboxStore::look(database::Connection& connection, const Delivery& delivery,
                                     bool whole) const {
  const ReceivedEvent& event = *delivery.event;
  const InboxKey key = key_of(event);
  if (has_trouble(connection, key)) {
    if (const auto first = first_held(connection, event); first && *first <= event.version) {
      if (is_held_otherwise(connection, event)) return look_again(connection, event);
      if (*first < event.version) return Arrival::behind_failure;
      if (!delivery.held) return Arrival::held_already;
    }
    if (connection.rows(of_version<sql::has_failure_before>(key)).step()) {
      return Arrival::behind_failure;
    }
  }
  if (!whole) return Arrival::next;
  const std::int64_t before = event.published_before.value();
  const std::optional<std::int64_t> position = position_of(connection, key);
  if (!position) return before == 0 ? Arrival::next : Arrival::first_of_many;
  if (key.version > *position) return before > *position ? Arrival::behind_gap : Arrival::next;
  const bool missed = connection.rows(of_version<sql::find_gap>(key)).step();
  return missed ? Arrival::late : look_again(connection, event);
}

bool InboxStore::is_held_otherwise(database::Connection& connection,
                                   const ReceivedEvent& event) const {
  if (!has_trouble(connection, key_of(event))) return false;
  auto other = connection.rows(sql::is_held_otherwise{.consumer = consumer_,
                                                      .source = event.store_id,
                                                      .stream = event.stream.name(),
                                                      .version = event.version.value(),
                                                      .event_id = bytes_of(event.id)});
  return other.step();
}

InboxStore::Arrival InboxStore::look_again(database::Connection& connection,
                                           const ReceivedEvent& event) const {
  if (is_handled(connection, event)) return Arrival::duplicate;
  if (is_held_otherwise(connection, event)) return Arrival::another_history;
  auto found = connection.rows(sql::find_forgotten{.consumer = consumer_});
  found.step();
  const Timestamp known = found.forgotten_through() + clocks_differ;
  return event.recorded_at > known ? Arrival::another_history : Arrival::duplicate;
}

bool InboxStore::meets_first_of_many(std::span<const Delivery> batch) const {
  bool found = false;
  store_.database().read([&](database::Connection& connection) {
    found = std::any_of(batch.begin(), batch.end(), [&](const Delivery& delivery) {
      return delivery.event && delivery.event->published_before.value() != 0 &&
             !position_of(connection, key_of(*delivery.event));
    });
  });
  return found;
}

bool InboxStore::take(database::Connection& connection, const ReceivedEvent& event,
                      Arrival standing, bool whole) {
  const sql::insert_handled handled{
      .consumer = consumer_, .event_id = bytes_of(event.id), .handled_at = now()};
  const bool is_new = connection.run(handled) > 0;
  settle(connection, event);
  if (standing == Arrival::late) split_gaps(connection, event);
  if (!whole || standing == Arrival::late || standing == Arrival::duplicate ||
      standing == Arrival::another_history) {
    return is_new;
  }
  const InboxKey key = key_of(event);
  if (standing == Arrival::behind_gap) {
    insert_gap(connection, key, position_of(connection, key).value_or(0),
               event.published_before.value());
  }
  if (standing == Arrival::first_of_many) insert_gap(connection, key, 0, {});
  connection.run(of_version<sql::upsert_position>(key));
  return is_new;
}

void InboxStore::split_gaps(database::Connection& connection, const ReceivedEvent& event) {
  const InboxKey key = key_of(event);
  connection.run(sql::split_gap_before{.consumer = key.consumer,
                                       .source = key.source,
                                       .stream = key.stream,
                                       .version = key.version,
                                       .previous = event.published_before.value()});
  connection.run(of_version<sql::split_gap_after>(key));
  connection.run(of_stream<sql::delete_full_gaps>(key));
}

bool InboxStore::is_handled(database::Connection& connection, const ReceivedEvent& event) const {
  const sql::has_handled handled{.consumer = consumer_, .event_id = bytes_of(event.id)};
  return connection.rows(handled).step();
}

void InboxStore::settle(database::Connection& connection, const ReceivedEvent& event) {
  const InboxKey key = key_of(event);
  if (!has_trouble(connection, key) || is_held_otherwise(connection, event)) return;
  connection.run(of_version<sql::delete_failure>(key));
  connection.run(of_version<sql::delete_held>(key));
  wake_first_held(connection, key, now());
}

void InboxStore::hold(database::Connection& connection, const Delivery& delivery, Timestamp due) {
  const ReceivedEvent& event = *delivery.event;
  const InboxKey key = key_of(event);
  if (delivery.held) {
    connection.run(sql::postpone_held{.consumer = key.consumer,
                                      .source = key.source,
                                      .stream = key.stream,
                                      .version = key.version,
                                      .due_at = due});
    return;
  }
  connection.run(
      sql::insert_held{.consumer = key.consumer,
                       .source = key.source,
                       .stream = key.stream,
                       .version = key.version,
                       .previous = event.published_before.value(),
                       .event_id = bytes_of(event.id),
                       .broker_stream = delivery.place.stream,
                       .broker_sequence = static_cast<std::int64_t>(delivery.place.sequence),
                       .size = static_cast<std::int64_t>(delivery.payload().size()),
                       .held_at = now(),
                       .due_at = due});
  note_trouble(key);
}

void InboxStore::watch(const ReceivedEvent& event) {
  held_->watch(bytes_of(event.id));
}

bool InboxStore::lose(database::Connection& connection, const HeldMessage& message, bool whole) {
  const InboxKey key = key_of(message);
  const sql::delete_lost lost{
      .consumer = key.consumer,
      .source = key.source,
      .stream = key.stream,
      .version = key.version,
      .broker_sequence = static_cast<std::int64_t>(message.broker_sequence)};
  if (connection.run(lost) == 0) return false;
  connection.run(of_version<sql::delete_failure>(key));
  std::int64_t after = message.previous.value();
  // What was held before it may still have to be handled.
  if (whole) after = std::min(after, position_of(connection, key).value_or(0));
  insert_loss(connection, key, after);
  if (whole) connection.run(of_version<sql::upsert_position>(key));
  wake_first_held(connection, key, now());
  return true;
}

void InboxStore::insert_gap(database::Connection& connection, const InboxKey& before,
                            std::int64_t after, std::optional<std::int64_t> missing) {
  connection.run(sql::insert_gap{.consumer = before.consumer,
                                 .source = before.source,
                                 .stream = before.stream,
                                 .after = after,
                                 .before = before.version,
                                 .missing = missing,
                                 .seen_at = now()});
}

void InboxStore::insert_loss(database::Connection& connection, const InboxKey& lost,
                             std::int64_t after) {
  InboxKey next = lost;
  ++next.version;
  insert_gap(connection, next, after, lost.version);
}

void InboxStore::note_loss(const LostMessage& message) {
  const std::int64_t version = message.version.value();
  store_.database().write([&](database::Connection& connection) {
    insert_loss(connection, {consumer_, message.source, message.stream, version}, version - 1);
  });
}

bool InboxStore::purge(std::chrono::microseconds retention) {
  bool more = false;
  store_.database().write([&](database::Connection& connection) {
    more = connection.run(sql::purge_handled{.consumer = consumer_,
                                             .now = now(),
                                             .retention = retention.count(),
                                             .most = purged_at_once}) == purged_at_once;
  });
  return more;
}

}  // namespace stela::nats

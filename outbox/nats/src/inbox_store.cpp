#include "inbox_store.hpp"

#include "inbox_sql.hpp"

#include <algorithm>
#include <cstring>

namespace stela::nats {

namespace sql = inbox::sql;
using sqlite::Connection;
using sqlite::Query;

namespace {

constexpr std::int64_t purged_at_once = 1'000;
/// How far a producer's clock may be ahead of this one.
constexpr std::chrono::minutes clocks_differ{1};

std::string_view bytes_of(const Uuid& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()};
}

bool changed(Connection& connection) {
  return sqlite3_changes(connection.handle()) > 0;
}

std::int64_t microseconds(Timestamp time) {
  return time.time_since_epoch().count();
}

std::string_view in_words(Start start) noexcept {
  return start == Start::now ? "now" : "first";
}

}  // namespace

void migrate_inbox(sqlite::Store& store) {
  store.core().migrate("inbox", sql::migrations);
}

InboxStore::InboxStore(sqlite::Store& store, const std::string& consumer) : store_{store} {
  migrate_inbox(store);
  store.core().writer().run_statements([&](Connection& connection) {
    connection.query(sql::insert_consumer).bind(1, consumer).bind(2, microseconds(now())).run();
    Query found = connection.query(sql::find_consumer);
    found.bind(1, consumer).step();
    consumer_ = found.integer(0);
  });
  held_.emplace(store, consumer_);
}

Query& InboxStore::bind_stream(Query& query, const ReceivedEvent& event) const {
  return query.bind(1, consumer_).bind(2, event.store_id).bind(3, event.stream.name());
}

void InboxStore::begin(Connection& connection) {
  Query has = connection.query(sql::has_failures);
  has.bind(1, consumer_).step();
  has_failures_ = has.integer(0) != 0;
  has_held_ = has.integer(1) != 0;
}

std::optional<StreamVersion> InboxStore::first_held(Connection& connection,
                                                    const ReceivedEvent& event) const {
  if (!has_held_) return {};
  Query first = connection.query(sql::first_held);
  if (!bind_stream(first, event).step()) return {};
  return StreamVersion{first.integer(0)};
}

InboxStore::Standing InboxStore::look(Connection& connection, const Delivery& delivery,
                                      bool whole) const {
  const ReceivedEvent& event = *delivery.event;
  if (const auto first = first_held(connection, event); first && *first <= event.version) {
    if (is_held_otherwise(connection, event)) return look_again(connection, event);
    if (*first < event.version) return Standing::behind_failure;
    if (!delivery.held) return Standing::held_already;
  }
  if (has_failures_) {
    Query failure = connection.query(sql::has_failure_before);
    if (bind_stream(failure, event).bind(4, event.version.value()).step()) {
      return Standing::behind_failure;
    }
  }
  if (!whole) return Standing::next;
  std::int64_t position = 0;
  {
    Query found = connection.query(sql::find_position);
    if (!bind_stream(found, event).step()) {
      return event.published_before.value() == 0 ? Standing::next : Standing::first_of_many;
    }
    position = found.integer(0);
  }
  if (event.version.value() > position) {
    return event.published_before.value() > position ? Standing::behind_gap : Standing::next;
  }
  Query gap = connection.query(sql::find_gap);
  const bool missed = bind_stream(gap, event).bind(4, event.version.value()).step();
  return missed ? Standing::late : look_again(connection, event);
}

bool InboxStore::is_held_otherwise(Connection& connection, const ReceivedEvent& event) const {
  if (!has_held_) return false;
  Query other = connection.query(sql::is_held_otherwise);
  return bind_stream(other, event)
      .bind(4, event.version.value())
      .bind_blob(5, bytes_of(event.id))
      .step();
}

InboxStore::Standing InboxStore::look_again(Connection& connection,
                                            const ReceivedEvent& event) const {
  if (is_handled(connection, event)) return Standing::duplicate;
  if (is_held_otherwise(connection, event)) return Standing::another_history;
  Query found = connection.query(sql::find_forgotten);
  found.bind(1, consumer_).step();
  const Timestamp known{std::chrono::microseconds{found.integer(0)} + clocks_differ};
  return event.recorded_at > known ? Standing::another_history : Standing::duplicate;
}

bool InboxStore::meets_first_of_many(std::span<const Delivery> batch) const {
  bool found = false;
  store_.core().reading().read([&](Connection& connection) {
    found = std::any_of(batch.begin(), batch.end(), [&](const Delivery& delivery) {
      if (!delivery.event || delivery.event->published_before.value() == 0) return false;
      Query position = connection.query(sql::find_position);
      return !bind_stream(position, *delivery.event).step();
    });
  });
  return found;
}

bool InboxStore::take(Connection& connection, const ReceivedEvent& event, Standing standing,
                      bool whole) {
  connection.query(sql::insert_handled)
      .bind(1, consumer_)
      .bind_blob(2, bytes_of(event.id))
      .bind(3, microseconds(now()))
      .run();
  const bool is_new = changed(connection);
  settle(connection, event);
  if (standing == Standing::late) split_gaps(connection, event);
  if (!whole || standing == Standing::late || standing == Standing::duplicate ||
      standing == Standing::another_history) {
    return is_new;
  }
  if (standing == Standing::behind_gap) {
    Query found = connection.query(sql::find_position);
    bind_stream(found, event).step();
    insert_gap(connection, event, found.integer(0), true);
  }
  if (standing == Standing::first_of_many) insert_gap(connection, event, 0, false);
  Query position = connection.query(sql::upsert_position);
  bind_stream(position, event).bind(4, event.version.value()).run();
  return is_new;
}

void InboxStore::split_gaps(Connection& connection, const ReceivedEvent& event) {
  Query before = connection.query(sql::split_gap_before);
  bind_stream(before, event)
      .bind(4, event.version.value())
      .bind(5, event.published_before.value())
      .run();
  Query after = connection.query(sql::split_gap_after);
  bind_stream(after, event).bind(4, event.version.value()).run();
  Query full = connection.query(sql::delete_full_gaps);
  bind_stream(full, event).run();
}

void InboxStore::insert_gap(Connection& connection, const ReceivedEvent& event, std::int64_t after,
                            bool expected) {
  Query gap = connection.query(sql::insert_gap);
  bind_stream(gap, event)
      .bind(4, after)
      .bind(5, event.version.value())
      .bind(7, microseconds(now()));
  if (expected) gap.bind(6, event.published_before.value());
  if (!expected) gap.bind(6, nullptr);
  gap.run();
}

bool InboxStore::is_handled(Connection& connection, const ReceivedEvent& event) const {
  Query handled = connection.query(sql::has_handled);
  return handled.bind(1, consumer_).bind_blob(2, bytes_of(event.id)).step();
}

void InboxStore::settle(Connection& connection, const ReceivedEvent& event) {
  if (is_held_otherwise(connection, event)) return;
  if (has_failures_) {
    Query failure = connection.query(sql::delete_failure);
    bind_stream(failure, event).bind(4, event.version.value()).run();
  }
  if (!has_held_) return;
  {
    Query held = connection.query(sql::delete_held);
    bind_stream(held, event).bind(4, event.version.value()).run();
  }
  Query next = connection.query(sql::wake_first_held);
  bind_stream(next, event).bind(4, microseconds(now())).run();
}

void InboxStore::hold(Connection& connection, const Delivery& delivery, Timestamp due) {
  const ReceivedEvent& event = *delivery.event;
  if (!delivery.held) {
    Query held = connection.query(sql::insert_held);
    bind_stream(held, event)
        .bind(4, event.version.value())
        .bind(5, event.published_before.value())
        .bind_blob(6, bytes_of(event.id))
        .bind(7, delivery.place.stream)
        .bind(8, static_cast<std::int64_t>(delivery.place.sequence))
        .bind(9, static_cast<std::int64_t>(delivery.payload().size()))
        .bind(10, microseconds(now()))
        .bind(11, microseconds(due))
        .run();
    has_held_ = true;
    return;
  }
  Query held = connection.query(sql::postpone_held);
  bind_stream(held, event).bind(4, event.version.value()).bind(5, microseconds(due)).run();
}

void InboxStore::watch(const ReceivedEvent& event) {
  held_->watch(bytes_of(event.id));
}

bool InboxStore::lose(Connection& connection, const HeldMessage& message, bool whole) {
  const auto bind = [&](Query& query) -> Query& {
    return query.bind(1, consumer_).bind(2, message.source).bind(3, message.stream);
  };
  {
    Query lost = connection.query(sql::delete_lost);
    bind(lost).bind(4, message.version.value());
    lost.bind(5, static_cast<std::int64_t>(message.broker_sequence)).run();
  }
  if (!changed(connection)) return false;
  {
    Query failure = connection.query(sql::delete_failure);
    bind(failure).bind(4, message.version.value()).run();
  }
  std::int64_t after = message.previous.value();
  if (whole) {
    // What was held before it may still have to be handled.
    Query found = connection.query(sql::find_position);
    after = std::min(after, bind(found).step() ? found.integer(0) : 0);
  }
  insert_loss(connection,
              {.source = message.source, .stream = message.stream, .version = message.version},
              after);
  if (whole) {
    Query position = connection.query(sql::upsert_position);
    bind(position).bind(4, message.version.value()).run();
  }
  Query next = connection.query(sql::wake_first_held);
  bind(next).bind(4, microseconds(now())).run();
  return true;
}

void InboxStore::insert_loss(Connection& connection, const LostMessage& message,
                             std::int64_t after) {
  connection.query(sql::insert_gap)
      .bind(1, consumer_)
      .bind(2, message.source)
      .bind(3, message.stream)
      .bind(4, after)
      .bind(5, message.version.value() + 1)
      .bind(6, message.version.value())
      .bind(7, microseconds(now()))
      .run();
}

void InboxStore::note_loss(const LostMessage& message) {
  store_.core().writer().run_statements([&](Connection& connection) {
    insert_loss(connection, message, message.version.value() - 1);
  });
}

std::pair<int, std::string> InboxStore::failure_of(const HeldMessage& message) const {
  std::pair<int, std::string> failure;
  store_.core().reading().read([&](Connection& connection) {
    Query found = connection.query(sql::find_failure);
    found.bind(1, consumer_).bind(2, message.source).bind(3, message.stream);
    if (!found.bind(4, message.version.value()).step()) return;
    failure = {static_cast<int>(found.integer(0)), std::string{found.text(1)}};
  });
  return failure;
}

int InboxStore::note_failure(Connection& connection, const ReceivedEvent& event,
                             const std::string& error) {
  Query failure = connection.query(sql::upsert_failure);
  bind_stream(failure, event).bind(4, event.version.value()).bind(5, error).step();
  const auto attempts = static_cast<int>(failure.integer(0));
  failure.step();
  has_failures_ = true;
  return attempts;
}

void InboxStore::explain_failure(Connection& connection, const ReceivedEvent& event,
                                 const std::string& error) {
  Query failure = connection.query(sql::explain_failure);
  bind_stream(failure, event).bind(4, event.version.value()).bind(5, error).run();
}

void InboxStore::take_back_failure(Connection& connection, const ReceivedEvent& event) {
  for (const std::string_view statement : {sql::take_back_failure, sql::delete_untried}) {
    Query failure = connection.query(statement);
    bind_stream(failure, event).bind(4, event.version.value()).run();
  }
}

void InboxStore::bury(Connection& connection, const Delivery& delivery, int attempts,
                      const std::string& error, bool whole) {
  if (delivery.event) {
    const Standing standing = look(connection, delivery, whole);
    if (!take(connection, *delivery.event, standing, whole)) return;
  }
  const std::string headers = KeptHeaders::to_json(MessageHeaders{delivery.message.get()});
  connection.query(sql::insert_dead_letter)
      .bind(1, consumer_)
      .bind(2, delivery.place.stream)
      .bind(3, static_cast<std::int64_t>(delivery.place.sequence))
      .bind(4, delivery.place.time)
      .bind(5, delivery.subject())
      .bind(6, headers)
      .bind_blob(7, delivery.payload())
      .bind(8, microseconds(now()))
      .bind(9, std::int64_t{attempts})
      .bind(10, error)
      .run();
}

std::optional<InboxStore::Letter> InboxStore::next_to_retry() {
  std::optional<Letter> letter;
  store_.core().reading().read([&](Connection& connection) {
    Query next = connection.query(sql::next_to_retry);
    if (!next.bind(1, consumer_).step()) return;
    letter = Letter{next.integer(0), std::string{next.text(1)},
                    KeptHeaders::from_json(next.text(5)), std::string{next.blob(6)}};
  });
  return letter;
}

bool InboxStore::take_letter(std::int64_t letter, const std::string& error) {
  bool taken = false;
  store_.core().writer().run_statements([&](Connection& connection) {
    connection.query(sql::take_dead_letter).bind(1, letter).bind(2, error).run();
    taken = changed(connection);
  });
  return taken;
}

bool InboxStore::remove_letter(Connection& connection, std::int64_t letter) {
  connection.query(sql::delete_dead_letter).bind(1, letter).run();
  return changed(connection);
}

void InboxStore::explain_letter(std::int64_t letter, const std::string& error) {
  store_.core().writer().run_statements([&](Connection& connection) {
    connection.query(sql::explain_dead_letter).bind(1, letter).bind(2, error).run();
  });
}

bool InboxStore::purge(std::chrono::microseconds retention) {
  bool more = false;
  store_.core().writer().run_statements([&](Connection& connection) {
    connection.query(sql::purge_handled)
        .bind(1, consumer_)
        .bind(2, microseconds(now()))
        .bind(3, retention.count())
        .bind(4, purged_at_once)
        .run();
    more = sqlite3_changes(connection.handle()) == purged_at_once;
  });
  return more;
}

void InboxStore::note_stream(const std::string& broker_stream) {
  store_.core().writer().run_statements([&](Connection& connection) {
    connection.query(sql::insert_broker_stream).bind(1, consumer_).bind(2, broker_stream).run();
  });
}

std::vector<std::string> InboxStore::other_streams(const std::string& broker_stream) const {
  std::vector<std::string> streams;
  store_.core().reading().read([&](Connection& connection) {
    streams.clear();
    Query others = connection.query(sql::list_other_streams);
    others.bind(1, consumer_).bind(2, broker_stream);
    while (others.step()) streams.emplace_back(others.text(0));
  });
  return streams;
}

void InboxStore::note_gone(const std::vector<std::string>& others,
                           const std::set<std::string>& gone, std::chrono::microseconds retention) {
  const auto note = [&](Connection& connection, std::string_view text, const std::string& stream,
                        Timestamp time) {
    Query query = connection.query(text);
    query.bind(1, consumer_).bind(2, stream).bind(3, microseconds(time)).run();
  };
  store_.core().writer().run_statements(
      [&](Connection& connection) {
        for (const std::string& stream : others) {
          if (gone.contains(stream)) {
            note(connection, sql::note_gone_stream, stream, now());
            note(connection, sql::forget_gone_stream, stream, now() - retention);
          } else {
            connection.query(sql::insert_broker_stream).bind(1, consumer_).bind(2, stream).run();
          }
        }
      },
      sqlite::Sync::none);
}

std::optional<Settled> InboxStore::settled(const ConsumerOptions& options) const {
  std::optional<Settled> settled;
  store_.core().reading().read([&](Connection& connection) {
    Query found = connection.query(sql::find_settled);
    found.bind(1, consumer_).bind(2, options.stream).bind(3, options.filter_subject);
    if (!found.bind(4, in_words(options.start)).step()) return;
    settled = Settled{found.integer(0), static_cast<std::uint64_t>(found.integer(1))};
  });
  return settled;
}

void InboxStore::note_settled(const ConsumerOptions& options, const Settled& settled) {
  store_.core().writer().run_statements(
      [&](Connection& connection) {
        connection.query(sql::upsert_settled)
            .bind(1, consumer_)
            .bind(2, options.stream)
            .bind(3, options.filter_subject)
            .bind(4, in_words(options.start))
            .bind(5, settled.stream_made_at)
            .bind(6, static_cast<std::int64_t>(settled.through))
            .run();
      },
      sqlite::Sync::none);
}

}  // namespace stela::nats

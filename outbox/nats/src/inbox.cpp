#include <stela/nats/inbox.hpp>

#include "inbox_sql.hpp"
#include "inbox_store.hpp"

namespace stela::nats {

namespace sql = inbox::sql;
using sqlite::Connection;
using sqlite::Query;

namespace {

Timestamp time_of(std::int64_t microseconds) {
  return Timestamp{std::chrono::microseconds{microseconds}};
}

bool has_inbox(Connection& connection) {
  Query query = connection.query(sql::has_inbox);
  query.step();
  return query.integer(0) != 0;
}

/// Where there is no inbox, there is nothing to read.
template <class Work>
void read(sqlite::Store& store, Work&& work) {
  store.core().reading().read([&](Connection& connection) {
    if (has_inbox(connection)) work(connection);
  });
}

bool change_letter(sqlite::Store& store, std::string_view statement, std::int64_t letter) {
  bool found = false;
  store.core().writer().run_statements([&](Connection& connection) {
    if (!has_inbox(connection)) return;
    connection.query(statement).bind(1, letter).run();
    found = sqlite3_changes(connection.handle()) == 1;
  });
  return found;
}

}  // namespace

Inbox::Inbox(sqlite::Store& store) : store_{store} {
  bool is_there = false;
  read(store, [&](Connection&) { is_there = true; });
  if (is_there) migrate_inbox(store);
}

std::vector<DeadLetter> Inbox::dead_letters(const InboxQuery& query) {
  std::vector<DeadLetter> letters;
  read(store_, [&](Connection& connection) {
    Query rows = connection.query(sql::list_dead_letters);
    rows.bind(1, query.consumer).bind(2, query.after).bind(3, std::int64_t{query.limit});
    while (rows.step()) {
      letters.push_back({.number = rows.integer(0),
                         .consumer = std::string{rows.text(1)},
                         .broker_stream = std::string{rows.text(2)},
                         .broker_sequence = static_cast<std::uint64_t>(rows.integer(3)),
                         .subject = std::string{rows.text(5)},
                         .headers = KeptHeaders::from_json(rows.text(6)),
                         .payload = std::string{rows.blob(7)},
                         .dead_at = time_of(rows.integer(8)),
                         .attempts = static_cast<int>(rows.integer(9)),
                         .error = std::string{rows.text(10)},
                         .is_to_retry = rows.integer(11) != 0});
    }
  });
  return letters;
}

bool Inbox::retry(std::int64_t letter) {
  return change_letter(store_, sql::retry_dead_letter, letter);
}

bool Inbox::discard(std::int64_t letter) {
  return change_letter(store_, sql::delete_dead_letter, letter);
}

std::vector<Gap> Inbox::gaps(const InboxQuery& query) {
  std::vector<Gap> gaps;
  read(store_, [&](Connection& connection) {
    Query rows = connection.query(sql::list_gaps);
    rows.bind(1, query.consumer).bind(2, query.after).bind(3, std::int64_t{query.limit});
    while (rows.step()) {
      gaps.push_back({.number = rows.integer(0),
                      .consumer = std::string{rows.text(1)},
                      .source = std::string{rows.text(2)},
                      .stream = std::string{rows.text(3)},
                      .after = StreamVersion{rows.integer(4)},
                      .missing = StreamVersion{rows.integer(5)},
                      .seen_at = time_of(rows.integer(7))});
    }
  });
  return gaps;
}

std::vector<HeldStream> Inbox::held(const InboxQuery& query) {
  std::vector<HeldStream> streams;
  read(store_, [&](Connection& connection) {
    Query rows = connection.query(sql::list_held);
    rows.bind(1, query.consumer).bind(2, query.after).bind(3, std::int64_t{query.limit});
    while (rows.step()) {
      streams.push_back({.number = rows.integer(0),
                         .consumer = std::string{rows.text(1)},
                         .source = std::string{rows.text(2)},
                         .stream = std::string{rows.text(3)},
                         .version = StreamVersion{rows.integer(4)},
                         .broker_stream = std::string{rows.text(5)},
                         .broker_sequence = static_cast<std::uint64_t>(rows.integer(6)),
                         .held_at = time_of(rows.integer(7)),
                         .due_at = time_of(rows.integer(8)),
                         .attempts = static_cast<int>(rows.integer(10)),
                         .error = std::string{rows.text(11)},
                         .behind = rows.integer(12),
                         .is_released = !rows.is_null(9)});
    }
  });
  return streams;
}

bool Inbox::release(std::int64_t held, Release how) {
  bool found = false;
  store_.core().writer().run_statements([&](Connection& connection) {
    if (!has_inbox(connection)) return;
    connection.query(sql::release_held)
        .bind(1, held)
        .bind(2, how == Release::skip ? "skip" : "retry")
        .bind(3, store_.core().now().time_since_epoch().count())
        .run();
    found = sqlite3_changes(connection.handle()) == 1;
  });
  return found;
}

std::vector<ConsumerStatus> Inbox::status() {
  std::vector<ConsumerStatus> all;
  read(store_, [&](Connection& connection) {
    Query rows = connection.query(sql::count_inbox);
    while (rows.step()) {
      ConsumerStatus status{.consumer = std::string{rows.text(0)},
                            .held_streams = rows.integer(1),
                            .held_messages = rows.integer(2),
                            .dead_letters = rows.integer(4),
                            .gaps = rows.integer(5)};
      if (!rows.is_null(3)) status.held_since = time_of(rows.integer(3));
      all.push_back(std::move(status));
    }
  });
  return all;
}

}  // namespace stela::nats

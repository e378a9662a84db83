#include <stela/nats/inbox.hpp>

#include "delivery.hpp"
#include "envelope.hpp"
#include "inbox_sql/consumers.hpp"
#include "inbox_sql/gaps.hpp"
#include "inbox_sql/parked.hpp"
#include "inbox_sql/readers.hpp"
#include "subject_layout.hpp"

#include "database/database.hpp"
#include "database/host.hpp"
#include "database/journal.hpp"
#include "follow/lease.hpp"

#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>

#include <limits>

namespace stela::nats {

namespace sql = inbox::sql;
namespace {

bool has_inbox(database::Connection& connection) {
  auto inbox = connection.rows(sql::has_inbox{});
  inbox.step();
  return inbox.present();
}

/// Does nothing if there is no inbox.
template <class Work>
void read(Store& store, Work&& work) {
  store.database().read([&](database::Connection& connection) {
    if (has_inbox(connection)) work(connection);
  });
}

/// Calls `take` for each row, in the requested direction.
template <class Forward, class Backward, class Take>
void list(database::Connection& connection, const InboxQuery& query, Take take) {
  const auto walk = [&](const auto& statement) {
    auto rows = connection.rows(statement);
    while (rows.step()) take(rows);
  };
  if (query.direction == Direction::forward) {
    return walk(Forward{.consumer = query.consumer, .after = query.after, .most = query.limit});
  }
  constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
  walk(Backward{.consumer = query.consumer,
                .before = query.after > 0 ? query.after : end,
                .most = query.limit});
}

/// A parked message and the first one of its stream.
struct Place {
  std::int64_t consumer = 0;
  std::string name = {};
  std::optional<std::string> source = {};
  std::optional<std::string> stream = {};
  std::int64_t first = 0;
};

std::optional<std::string> text_or_none(const std::optional<std::string_view>& text) {
  if (!text) return {};
  return std::string{*text};
}

/// NotFound if it isn't parked.
Place find_parked(database::Connection& connection, std::int64_t number) {
  if (has_inbox(connection)) {
    auto row = connection.rows(sql::find_parked{.parked = number});
    if (row.step()) {
      return {row.consumer(), std::string{row.name()}, text_or_none(row.source()),
              text_or_none(row.stream()), row.first().value_or(number)};
    }
  }
  throw NotFound{"there is no parked message " + std::to_string(number)};
}

/// Marks all parked messages of the stream to be retried, in order.
void retry_stream(database::Connection& connection, const Place& place) {
  connection.run(sql::retry_parked_stream{
      .consumer = place.consumer, .source = *place.source, .stream = *place.stream, .retry = true});
}

/// Decodes a header, or returns it as it is if it can't be decoded: nothing has checked it.
std::string text_of_header(const std::map<std::string, std::string>& headers,
                           const char* name) try {
  const auto at = headers.find(name);
  return at == headers.end() ? std::string{} : percent_decoded(at->second);
} catch (const CorruptEvent&) {
  return headers.at(name);
}

std::map<std::string, std::string> first_of_each(const KeptHeaders::Map& headers) {
  return {headers.begin(), headers.end()};
}

/// Adds the event's properties from the headers.
ParkedMessage with_event(ParkedMessage parked) {
  parked.stream = text_of_header(parked.headers, "ce-subject");
  parked.event_id = text_of_header(parked.headers, "ce-id");
  return parked;
}

std::vector<ReaderStatus> readers_of(database::Connection& connection, const std::string& consumer,
                                     Timestamp now) {
  std::vector<ReaderStatus> readers;
  auto rows = connection.rows(sql::list_readers{.consumer = consumer});
  while (rows.step()) {
    readers.push_back({.consumer = consumer,
                       .broker_stream = std::string{rows.broker_stream()},
                       .filter = std::string{rows.filter()},
                       .position = static_cast<std::uint64_t>(rows.position()),
                       .owner = text_or_none(rows.owner()).value_or(""),
                       .lease_until = rows.lease_until(),
                       .is_overdue = rows.owner() && rows.lease_until() <= now,
                       .unread_since = rows.unread_since(),
                       .failing = static_cast<std::uint64_t>(rows.failing()),
                       .failing_since = rows.failing_since(),
                       .attempts = static_cast<int>(rows.attempts()),
                       .next_attempt_at = rows.next_attempt_at(),
                       .error = std::string{rows.error()},
                       .is_waiting = rows.waits_at() > 0,
                       .is_paused = rows.paused(),
                       .paused_at = rows.paused_at()});
  }
  return readers;
}

/// Adds an entry to the journal.
void note(Store& store, database::Connection& connection, const database::StateChange& change) {
  database::note(connection, store.database().now(), change);
}

void note_message(Store& store, database::Connection& connection, const Place& place,
                  std::int64_t parked, std::string_view what, std::string_view who) {
  std::string detail = "parked message " + std::to_string(parked);
  if (place.stream) detail += " of " + *place.stream;
  note(store, connection,
       {.part = "inbox", .subject = place.name, .what = what, .who = who, .detail = detail});
}

/// NotFound if there is no such consumer.
std::int64_t number_of(database::Connection& connection, std::string_view consumer) {
  if (has_inbox(connection)) {
    auto row = connection.rows(sql::find_consumer{.name = consumer});
    if (row.step()) return row.consumer();
  }
  throw NotFound{"there is no consumer '" + std::string{consumer} + "'"};
}

void set_paused(Store& store, std::string_view consumer, bool paused, std::string_view who) {
  const std::string_view what = paused ? "paused" : "resumed";
  store.database().write_apart(
      [&](database::Connection& connection) {
        number_of(connection, consumer);
        connection.run(sql::pause_consumer{
            .consumer = consumer, .paused = paused, .now = store.database().now()});
        note(store, connection, {.part = "inbox", .subject = consumer, .what = what, .who = who});
      },
      database::Sync::as_stored);
}

/// NotFound if there is no such reader, UsageError if it is reading.
void require_idle(const database::Database& database, database::Connection& connection,
                  std::int64_t consumer, std::string_view broker_stream) {
  const std::string stream{broker_stream};
  auto row =
      connection.rows(sql::find_reader{.consumer = consumer, .broker_stream = broker_stream});
  if (!row.step()) throw NotFound{"the consumer doesn't read the stream '" + stream + "'"};
  const std::string owner{row.owner().value_or("")};
  const follow::StoredLease lease{row.lease_until(), std::chrono::microseconds{row.lease_ttl()},
                                  row.presence()};
  if (follow::is_free(owner, lease, database.now(), database)) return;
  throw UsageError{"'" + owner + "' reads the stream '" + stream +
                   "' for the consumer; stop its processes first"};
}

}  // namespace

InboxOperations::InboxOperations(Store& store, std::string who)
    : store_{store.anchor()}, who_{who.empty() ? host::user() : std::move(who)} {
  bool is_there = false;
  read(store, [&](database::Connection&) { is_there = true; });
  if (is_there) migrate_inbox(store);
}

std::vector<ParkedMessage> InboxOperations::parked(const InboxQuery& query) {
  std::vector<ParkedMessage> all;
  read(store_, [&](database::Connection& connection) {
    all.clear();
    list<sql::list_parked, sql::list_parked_back>(connection, query, [&](const auto& rows) {
      all.push_back(
          with_event({.number = rows.parked(),
                      .consumer = std::string{rows.consumer()},
                      .broker_stream = std::string{rows.broker_stream()},
                      .broker_sequence = static_cast<std::uint64_t>(rows.broker_sequence()),
                      .subject = std::string{rows.subject()},
                      .headers = first_of_each(KeptHeaders::from_json(rows.headers())),
                      .payload = std::string{rows.payload()},
                      .parked_at = rows.parked_at(),
                      .attempts = static_cast<int>(rows.attempts()),
                      .error = std::string{rows.error()},
                      .is_to_retry = rows.retry()}));
    });
  });
  return all;
}

void InboxOperations::retry(std::int64_t parked) {
  store_.database().write([&](database::Connection& connection) {
    const Place place = find_parked(connection, parked);
    if (place.first != parked) {
      throw UsageError{"parked message " + std::to_string(parked) + " waits behind message " +
                       std::to_string(place.first) + " of its stream; retry that one"};
    }
    note_message(store_, connection, place, parked, "retried", who_);
    if (place.stream) return retry_stream(connection, place);
    connection.run(sql::retry_parked{.parked = parked});
  });
}

void InboxOperations::discard(std::int64_t parked) {
  store_.database().write([&](database::Connection& connection) {
    const Place place = find_parked(connection, parked);
    note_message(store_, connection, place, parked, "discarded", who_);
    connection.run(sql::delete_parked{.parked = parked});
    if (place.stream && place.first == parked) retry_stream(connection, place);
  });
}

std::vector<Gap> InboxOperations::gaps(const InboxQuery& query) {
  std::vector<Gap> gaps;
  read(store_, [&](database::Connection& connection) {
    gaps.clear();
    list<sql::list_gaps, sql::list_gaps_back>(connection, query, [&](const auto& rows) {
      gaps.push_back({.number = rows.gap(),
                      .consumer = std::string{rows.consumer()},
                      .source = std::string{rows.source()},
                      .stream = std::string{rows.stream()},
                      .after = StreamVersion{rows.after()},
                      .missing = StreamVersion{rows.missing()},
                      .seen_at = rows.seen_at()});
    });
  });
  return gaps;
}

std::vector<ConsumerStatus> InboxOperations::status() {
  std::vector<ConsumerStatus> all;
  read(store_, [&](database::Connection& connection) {
    all.clear();
    auto rows = connection.rows(sql::list_consumers{});
    while (rows.step()) {
      all.push_back({.consumer = std::string{rows.consumer()}, .gaps = rows.gaps()});
    }
    for (ConsumerStatus& one : all) {
      one.readers = readers_of(connection, one.consumer, store_.database().now());
      auto parked = connection.rows(sql::count_parked{.consumer = one.consumer});
      parked.step();
      one.parked_messages = parked.messages();
      one.parked_streams = parked.streams();
      one.parked_bytes = parked.bytes();
      one.parked_since = parked.since();
    }
  });
  return all;
}

void InboxOperations::pause(std::string_view consumer) {
  set_paused(store_, consumer, true, who_);
}

void InboxOperations::resume(std::string_view consumer) {
  set_paused(store_, consumer, false, who_);
}

void InboxOperations::move(std::string_view consumer, std::string_view broker_stream,
                           std::uint64_t position) {
  check_consumer_name(consumer);
  check_stream_name(broker_stream);
  migrate_inbox(store_);
  store_.database().write_apart(
      [&](database::Connection& connection) {
        connection.run(
            sql::insert_consumer{.name = consumer, .created_at = store_.database().now()});
        const std::int64_t number = number_of(connection, consumer);
        connection.run(sql::insert_reader{.consumer = number,
                                          .broker_stream = broker_stream,
                                          .filter = "",
                                          .now = store_.database().now()});
        connection.run(sql::move_reader{.consumer = number,
                                        .broker_stream = broker_stream,
                                        .position = static_cast<std::int64_t>(position)});
        connection.run(sql::delete_sources{.consumer = number, .broker_stream = broker_stream});
        const std::string detail =
            std::string{broker_stream} + " behind message " + std::to_string(position);
        note(
            store_, connection,
            {.part = "inbox", .subject = consumer, .what = "moved", .who = who_, .detail = detail});
      },
      database::Sync::as_stored);
}

void InboxOperations::forget(std::string_view consumer, std::string_view broker_stream) {
  store_.database().write_apart(
      [&](database::Connection& connection) {
        const std::int64_t number = number_of(connection, consumer);
        require_idle(store_.database(), connection, number, broker_stream);
        connection.run(sql::delete_reader{.consumer = number, .broker_stream = broker_stream});
        note(store_, connection,
             {.part = "inbox",
              .subject = consumer,
              .what = "forgotten",
              .who = who_,
              .detail = broker_stream});
      },
      database::Sync::as_stored);
}

}  // namespace stela::nats

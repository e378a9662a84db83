#include "raw_nats_relay.hpp"

#include <array>

namespace stela::bench {
namespace {

constexpr const char* next_sql =
    "SELECT e.sequence, e.version, e.published_before, e.recorded_at, e.event_id, s.name, k.type,"
    " e.correlation_id, e.payload "
    "FROM outbox_messages AS m JOIN events AS e ON e.sequence = m.sequence"
    " JOIN streams AS s ON s.stream = m.stream JOIN event_kinds AS k ON k.kind = e.kind "
    "WHERE m.partition = (SELECT p.partition FROM outbox_partitions AS p) AND m.sequence > ?1 "
    "ORDER BY m.sequence LIMIT ?2";
constexpr const char* remove_sql =
    "DELETE FROM outbox_messages"
    " WHERE partition = (SELECT p.partition FROM outbox_partitions AS p)"
    " AND sequence BETWEEN ?1 AND ?2";
constexpr const char* batch_sql =
    "INSERT INTO outbox_batches (partition, last_sequence, first_sequence, count, published_at,"
    " first_broker, last_broker) "
    "SELECT partition, ?2, ?1, ?3, 1795000000000000, ?1, ?2 FROM outbox_partitions";
constexpr const char* advance_sql =
    "UPDATE outbox_partitions SET published_through = ?1, broker_sequence = ?1,"
    " removed = removed + ?2, published = published + ?2";

}  // namespace

void refill_outbox(const std::string& path) {
  RawDatabase database{path, {}};
  database.execute("BEGIN IMMEDIATE");
  database.execute("DELETE FROM outbox_batches");
  database.execute("DELETE FROM outbox_messages");
  database.execute(
      "INSERT INTO outbox_messages (partition, sequence, stream) "
      "SELECT p.partition, e.sequence, e.stream"
      " FROM outbox_partitions AS p, events AS e ORDER BY e.sequence");
  database.execute(
      "UPDATE outbox_partitions SET owner = NULL, lease_until = 0, published_through = 0,"
      " broker_sequence = 0, broker_id = '', flight_through = 0, flight_count = 0,"
      " removed = 0, published = 0");
  database.execute("DELETE FROM outbox_workers");
  database.execute("COMMIT");
  database.truncate_log();
}

std::string store_id_of(const std::string& path) {
  RawDatabase database{path, {}};
  RawStatement query{database, "SELECT value FROM stela_facts WHERE name = 'store_id'"};
  query.step();
  return std::string{query.bytes(0)};
}

RawOutbox::RawOutbox(const std::string& path)
    : database_{path, {}},
      next_{database_, next_sql},
      begin_{database_, "BEGIN IMMEDIATE"},
      remove_{database_, remove_sql},
      batch_{database_, batch_sql},
      advance_{database_, advance_sql},
      commit_{database_, "COMMIT"} {}

void RawOutbox::mark(std::int64_t first, std::int64_t last, std::int64_t count) {
  begin_.run();
  remove_.bind(1, first);
  remove_.bind(2, last);
  remove_.run();
  batch_.bind(1, first);
  batch_.bind(2, last);
  batch_.bind(3, count);
  batch_.run();
  advance_.bind(1, last);
  advance_.bind(2, count);
  advance_.run();
  commit_.run();
}

KeptEvent::KeptEvent(const RawEvent& from, int of_partition)
    : event{from}, partition{of_partition} {
  const std::array<std::string_view RawEvent::*, 5> texts{&RawEvent::id, &RawEvent::stream,
                                                          &RawEvent::type, &RawEvent::correlation,
                                                          &RawEvent::payload};
  for (const auto text : texts) bytes_ += event.*text;
  std::size_t at = 0;
  for (const auto text : texts) {
    const std::size_t size = (event.*text).size();
    event.*text = std::string_view{bytes_}.substr(at, size);
    at += size;
  }
}

void keep_all(const std::string& path, std::vector<KeptEvent>& kept) {
  RawDatabase database{path, {}};
  RawStatement query{
      database,
      "SELECT e.sequence, e.version, e.published_before, e.recorded_at, e.event_id, s.name, k.type,"
      " e.correlation_id, e.payload, m.partition "
      "FROM outbox_messages AS m JOIN events AS e ON e.sequence = m.sequence"
      " JOIN streams AS s ON s.stream = m.stream JOIN event_kinds AS k ON k.kind = e.kind "
      "ORDER BY m.sequence"};
  while (query.step()) kept.emplace_back(event_in(query), static_cast<int>(query.integer(9)));
}

void relay_bare(const std::string& path, RawNats& nats, const RawRelayOptions& options) {
  RawOutbox outbox{path};
  RawEnvelope envelope{store_id_of(path), options.chained};
  relay_bare(outbox, envelope, nats, options);
}

}  // namespace stela::bench

#include "million.hpp"

#include "measure.hpp"
#include "raw.hpp"
#ifdef STELA_BENCH_POSTGRES
#include "raw_postgres.hpp"
#endif

#include <stela/eventstore.hpp>
#include <stela/outbox.hpp>
#include <stela/projections.hpp>
#include <stela/testing/manual_clock.hpp>
#ifdef STELA_BENCH_NATS
#include <stela/nats/inbox.hpp>
#endif

#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <string_view>

namespace stela::bench {
namespace {

using namespace std::chrono_literals;
using Execute = std::function<void(const std::string&)>;

constexpr std::int64_t events_each = 10;

std::string text_of(std::int64_t number) {
  return std::to_string(number);
}

// ---- Events

struct Category {
  std::string_view name;
  std::array<std::string_view, 4> types;
};
constexpr std::array<Category, 4> categories{
    {{"order", {"order.placed", "order.line_added", "order.line_dropped", "order.shipped"}},
     {"payment", {"payment.requested", "payment.noted", "payment.refused", "payment.taken"}},
     {"customer", {"customer.joined", "customer.moved", "customer.asked", "customer.left"}},
     {"invoice", {"invoice.made", "invoice.read", "invoice.reminded", "invoice.paid"}}}};

/// Half of all streams are orders.
const Category& category_of(std::int64_t stream) {
  constexpr std::array<std::size_t, 10> shares{0, 1, 0, 2, 0, 1, 0, 3, 0, 1};
  return categories[shares[static_cast<std::size_t>(stream) % shares.size()]];
}

/// As the store makes them, and found again by its number.
EventId id_of(std::int64_t number, Timestamp at) {
  const auto ms = static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count());
  Dice dice{static_cast<std::uint64_t>(number)};
  const std::array<std::uint64_t, 2> random{dice.next(), dice.next()};
  Uuid::Bytes bytes{};
  std::memcpy(bytes.data(), random.data(), bytes.size());
  for (std::size_t i = 0; i < 6; ++i) bytes[i] = static_cast<std::uint8_t>(ms >> (8 * (5 - i)));
  bytes[6] = static_cast<std::uint8_t>(0x70 | (bytes[6] & 0x0f));
  bytes[8] = static_cast<std::uint8_t>(0x80 | (bytes[8] & 0x3f));
  return EventId{bytes};
}

/// Deals events out over the streams, one by one, as life does; over the last week.
class Appends {
 public:
  Appends(Store& store, testing::ManualClock& clock, std::int64_t events)
      : store_{store},
        clock_{clock},
        streams_{events / events_each},
        begin_{system_clock().now() - week},
        step_{std::chrono::duration_cast<std::chrono::microseconds>(week - 1min) / events} {}

  void run() {
    for (std::int64_t first = 0; first < streams_ * events_each; first += at_once) {
      append(first, std::min(first + at_once, streams_ * events_each));
    }
  }

 private:
  static constexpr std::int64_t at_once = 500;
  static constexpr auto week = std::chrono::hours{7 * 24};

  Timestamp time_of(std::int64_t number) const {
    return begin_ + number / at_once * at_once * step_;
  }

  void append(std::int64_t first, std::int64_t end) {
    clock_.jump_to(time_of(first));
    // They stay where they are: what follows points to them.
    std::deque<StreamId> names;
    std::deque<Tag> tags;
    std::deque<Context> contexts;
    std::deque<NewEvent> events;
    std::vector<StreamAppend> appends;
    for (std::int64_t i = first; i < end; ++i) {
      const std::int64_t stream = i % streams_;
      const std::int64_t turn = i / streams_;
      const Category& category = category_of(stream);
      names.push_back(StreamId::of(category.name, text_of(stream)));
      contexts.push_back({.correlation_id = "request-" + text_of(stream / 3), .actor = "web"});
      if (turn > 0) contexts.back().causation_id = id_of(i - streams_, time_of(i - streams_));
      const auto type = static_cast<std::size_t>(turn == 9 ? 3 : turn == 0 ? 0 : 1 + turn % 2);
      events.push_back({.type = category.types[type],
                        .publishes = turn == 0 || turn == 5 || turn == 9,
                        .payload = payload,
                        .id = id_of(i, time_of(i)),
                        .context = &contexts.back()});
      if (turn == 0) {
        tags.push_back(Tag::of("buyer", text_of(stream / 10)));
        events.back().tags = {&tags.back(), 1};
      }
      appends.push_back({names.back(), ExpectedVersion::any(), {&events.back(), 1}});
    }
    store_.append({.streams = appends});
  }

  static constexpr std::string_view payload =
      R"({"product":"a lamp of brass","quantity":2,"unit_cents":4200,"currency":"EUR","note":"by the door"})";

  Store& store_;
  testing::ManualClock& clock_;
  const std::int64_t streams_;
  const Timestamp begin_;
  const std::chrono::microseconds step_;
};

// ---- Rows, as relays, runners, consumers and operators would have left them

std::string numbers_to(std::int64_t last) {
  return "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS bigint) UNION ALL SELECT i + 1 FROM n WHERE i "
         "< " +
         text_of(last) + ") ";
}

class Rows {
 public:
  Rows(Execute execute, std::string empty_object, std::string some_id, std::int64_t events)
      : execute_{std::move(execute)},
        empty_object_{std::move(empty_object)},
        some_id_{std::move(some_id)},
        events_{events},
        streams_{events / events_each},
        cut_{events - events / 50},
        now_{system_clock().now().time_since_epoch().count()} {}

  void run() {
    execute_("BEGIN");
    park();
    publish();
    own_partitions();
    follow();
    set_timers();
#ifdef STELA_BENCH_NATS
    consume();
#endif
    note();
    execute_("COMMIT");
  }

 private:
  std::string ago(std::chrono::microseconds time) const {
    return text_of(now_ - time.count());
  }
  std::string in(std::chrono::microseconds time) const {
    return text_of(now_ + time.count());
  }

  /// Of one stream in fourteen all that was to be published by then, behind its first message.
  void park() {
    const std::string head = "CASE WHEN m.sequence <= " + text_of(streams_) + " THEN ";
    execute_(
        "INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, "
        "error, "
        "failure, failure_class) SELECT m.stream, m.sequence, m.partition, e.recorded_at + "
        "1000000, "
        "5, " +
        head +
        "CASE m.stream % 2 WHEN 0 THEN 'refused' ELSE 'attempts' END "
        "ELSE 'behind' END, " +
        head + "'the broker refuses group ' || (m.stream % 5) ELSE '' END, " + head +
        "'0123456789' || (10 + m.stream % 5) END, " + head +
        "'rejected' END "
        "FROM outbox_messages AS m JOIN events AS e ON e.sequence = m.sequence "
        "WHERE m.stream % 14 = 7 AND m.sequence <= " +
        text_of(cut_));
    execute_(
        "INSERT INTO outbox_discarded (sequence, stream, partition, discarded_at, reason, error) "
        "SELECT sequence, stream, partition, " +
        ago(24h) +
        ", 'refused', 'too large' "
        "FROM outbox_messages WHERE stream % 300 = 8 AND sequence <= " +
        text_of(streams_));
    execute_(
        "INSERT INTO outbox_redeliveries (partition, generation, sequence, stream, kind, "
        "requested_at) SELECT partition, 1, sequence, stream, 'republish', " +
        ago(1min) +
        " FROM outbox_messages WHERE stream % 300 = 9 AND sequence <= " + text_of(streams_));
  }

  /// Batches of fifty, a second after their last event.
  void publish() {
    execute_(
        "INSERT INTO outbox_batches (partition, last_sequence, redelivery, first_sequence, count, "
        "published_at, first_broker, last_broker) "
        "SELECT b.partition, b.last, 0, b.first, b.count, "
        "(SELECT e.recorded_at FROM events AS e WHERE e.sequence = b.last) + 1000000, b.low, "
        "b.high "
        "FROM (SELECT r.partition, min(r.sequence) AS first, max(r.sequence) AS last, "
        "count(*) AS count, min(r.place) AS low, max(r.place) AS high "
        "FROM (SELECT partition, sequence, row_number() OVER (PARTITION BY partition "
        "ORDER BY sequence) AS place FROM outbox_messages WHERE sequence <= " +
        text_of(cut_) + " AND stream % 14 <> 7 AND NOT (stream % 300 = 8 AND sequence <= " +
        text_of(streams_) + ")) AS r GROUP BY r.partition, (r.place - 1) / 50) AS b");
    execute_("DELETE FROM outbox_messages WHERE sequence <= " + text_of(cut_));
    execute_(
        "UPDATE outbox_messages SET attempts = 3, last_error = 'no answer' "
        "WHERE stream % 100 = 3");
  }

  /// Three workers, and a partition that is stopped.
  void own_partitions() {
    execute_(numbers_to(3) +
             "INSERT INTO outbox_workers (worker, host, pid, started_at, heartbeat_until, "
             "heartbeat_ttl, broker, presence, broker_since, is_cut_off) SELECT 'worker-' || i, "
             "'shop-' || i, 4000 + i, " +
             ago(24h) + ", " + in(24h) + ", 86400000000, 'connected', -1, 0, 0 <> 0 FROM n");
    execute_(
        "UPDATE outbox_partitions SET epoch = 7, lease_ttl = 86400000000, "
        "lease_until = " +
        in(24h) +
        ", owner = 'worker-' || (1 + partition % 3), "
        "published_through = " +
        text_of(cut_) + ", moved_at = " + ago(1s) +
        ", "
        "published = (SELECT sum(b.count) FROM outbox_batches AS b "
        "WHERE b.partition = outbox_partitions.partition), "
        "broker_sequence = (SELECT max(b.last_broker) FROM outbox_batches AS b "
        "WHERE b.partition = outbox_partitions.partition)");
    execute_("UPDATE outbox_partitions SET removed = published + parked + discarded");
    execute_(
        "UPDATE outbox_partitions SET stopped = 'poison', stopped_detail = 'the broker refuses "
        "it', stopped_at = " +
        ago(1h) + " WHERE partition = 16");
  }

  /// One that is where the events are, one that is behind, one with parked events, a process.
  void follow() {
    const std::string insert =
        "INSERT INTO projections (name, build, version, kind, state, position, began_at, "
        "changed_at) "
        "VALUES ('";
    const auto projector = [&](const std::string& name, const std::string& kind, std::int64_t at) {
      execute_(insert + name + "', 1, 1, '" + kind + "', 'living', " + text_of(at) + ", " +
               ago(24h) + ", " + ago(1min) + ")");
    };
    projector("order_summary", "async", events_);
    projector("revenue", "async", events_ - events_ / 20);
    projector("letters", "async", events_);
    projector("payment_deadline", "reaction", events_);
    execute_(
        "INSERT INTO projection_parked (name, build, sequence, state, parked_at, attempts, error) "
        "SELECT 'letters', 1, sequence, 'parked', recorded_at + 1000000, 5, 'no such address' "
        "FROM events WHERE stream % 50 = 4");
  }

  void set_timers() {
    execute_("INSERT INTO projection_processes (name, registered_at) VALUES ('payment_deadline', " +
             ago(24h) + ")");
    execute_(
        numbers_to(events_ / 10) +
        "INSERT INTO projection_timers (process, key, kind, version, generation, state, due_at, "
        "wake_at, error, recurrence, set_at, correlation_id, causation_id, metadata, payload) "
        "SELECT 'payment_deadline', 'order-' || i, 'not_paid', 1, 1, "
        "CASE WHEN i % 1000 = 7 THEN 'parked' ELSE 'pending' END, t.due + (i * 7919 % 1000003) * "
        "1000000, t.due + (i * 7919 % 1000003) * 1000000, "
        "CASE WHEN i % 1000 = 7 THEN 'no such order' ELSE '' END, '', " +
        ago(24h) + ", 'request-' || (i / 3), '', '', " + empty_object_ + " FROM n, (SELECT " +
        ago(1h) + " AS due) AS t");
  }

  void consume() {
    execute_("INSERT INTO inbox_consumers (name, created_at) VALUES ('billing', " + ago(24h) + ")");
    execute_(
        numbers_to(16) +
        "INSERT INTO inbox_readers (consumer, broker_stream, filter, stream_made_at, position, "
        "unread_since) SELECT 1, 'SHOP_p' || (9 + i), '', 1, 10000, " +
        ago(1h) + " FROM n");
    execute_(numbers_to(events_ / 10) +
             "INSERT INTO inbox_positions (consumer, source, stream, version, event_id, "
             "recorded_at) SELECT 1, 'shop', 'order-' || i, 10, " +
             some_id_ + ", " + ago(1h) + " FROM n");
    execute_(numbers_to(events_ / 50) +
             "INSERT INTO inbox_parked (consumer, broker_stream, broker_sequence, broker_time, "
             "source, stream, version, subject, headers, payload, parked_at, attempts, error) "
             "SELECT 1, 'SHOP_p10', i, i, 'shop', 'order-' || (i / 4), i % 4, "
             "'shop.order.placed', '{\"Stela-Type\":\"order.placed\"}', " +
             empty_object_ + ", " + ago(24h) +
             " + i * 1000000, 5, CASE i % 4 WHEN 0 THEN 'no such customer' ELSE '' END "
             "FROM n");
    execute_(numbers_to(events_ / 100) +
             "INSERT INTO inbox_gaps (consumer, source, stream, after, before, seen_at) "
             "SELECT 1, 'shop', 'order-' || i, 3, 5, " +
             ago(24h) + " + i FROM n");
  }

  /// What operators and samples leave.
  void note() {
    for (const std::string table : {"outbox_actions", "projection_timer_actions"}) {
      execute_(numbers_to(events_ / 200) + "INSERT INTO " + table +
               " (at, who, what, detail) SELECT " + ago(24h) +
               " + i * 1000000, 'ann@shop', 'retry', 'message ' || i FROM n");
    }
    execute_(numbers_to(events_ / 200) +
             "INSERT INTO stela_changes (at, part, subject, what, who, detail) SELECT " + ago(24h) +
             " + i * 1000000, 'outbox', 'p0' || (i % 10), 'taken over', '', 'by worker-1' FROM n");
    execute_(numbers_to(events_ / 10) +
             "INSERT INTO append_ids (append_id, first_sequence, last_sequence, checksum, used_at) "
             "SELECT 'request-' || i, i, i, 0, " +
             ago(24h) + " FROM n");
    execute_(
        "INSERT INTO snapshots (stream, version, sequence, state_version, taken_at, checksum, "
        "payload) SELECT stream, version, sequence, 1, recorded_at, 0, " +
        empty_object_ + " FROM events WHERE version = 5 AND stream % 5 = 1");
    sample();
  }

  void sample() {
    constexpr std::array<std::string_view, 10> names{
        "store.head_total",        "outbox.published_total", "outbox.failed_total",
        "outbox.taken_over_total", "outbox.pending",         "outbox.parked",
        "outbox.lag_ms",           "outbox.workers",         "outbox.unowned",
        "outbox.stopped"};
    for (const std::string_view name : names) {
      execute_("INSERT INTO stela_series (name) VALUES ('" + std::string{name} + "')");
    }
    execute_(numbers_to(7 * 24 * 60) +
             "INSERT INTO stela_samples (series, minute, value) SELECT s.series, " +
             text_of(now_ / 60'000'000) + " - i, 100000000 - i FROM n, stela_series AS s");
  }

  const Execute execute_;
  const std::string empty_object_;
  const std::string some_id_;
  const std::int64_t events_;
  const std::int64_t streams_;
  /// What was appended later isn't published yet.
  const std::int64_t cut_;
  const std::int64_t now_;
};

void fill(Store& store, testing::ManualClock& clock, std::int64_t events) {
  const Outbox outbox{store, {.partition_count = 16}};
  const Projections projections{store};
#ifdef STELA_BENCH_NATS
  nats::migrate_inbox(store);
#endif
  Appends{store, clock, events}.run();
  StoreOperations{store}.index_links();
}

}  // namespace

void make_million(const std::string& path, std::int64_t events) {
  testing::ManualClock clock;
  {
    auto store = sqlite::open(path, {.durability = sqlite::Durability::relaxed, .clock = &clock});
    fill(store, clock, events);
  }
  RawDatabase raw{path, {}};
  Rows{[&](const std::string& sql) { raw.execute(sql); }, "x'7b7d'", "zeroblob(16)", events}.run();
  raw.truncate_log();
}

#ifdef STELA_BENCH_POSTGRES
void make_million_on_postgres(const std::string& url, std::int64_t events) {
  testing::ManualClock clock;
  {
    auto store = postgres::open(url, {.clock = &clock});
    fill(store, clock, events);
  }
  RawPostgres raw{url};
  raw.execute("SET search_path = stela");
  Rows{[&](const std::string& sql) { raw.execute(sql); }, R"('\x7b7d'::bytea)",
       "decode(repeat('00', 16), 'hex')", events}
      .run();
  raw.execute("VACUUM ANALYZE");
}
#endif

}  // namespace stela::bench

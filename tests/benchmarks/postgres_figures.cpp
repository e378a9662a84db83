// Appending to PostgreSQL and reading from it, against bare libpq that does the same work; and what
// other ways to put appends in order cost.
#include "appends.hpp"
#include "contest.hpp"
#include "memory_broker.hpp"
#include "postgres_shop.hpp"
#include "raw_postgres.hpp"
#include "support/tcp_proxy.hpp"

#include <xxhash.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>

namespace stela::bench {
namespace {

void measure_alone(Bench& bench, const test::PostgresServer& server, std::size_t events,
                   const std::string& url, const std::string& name, std::optional<Goal> goal) {
  if (!bench.begins(name)) return;
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  make_raw_postgres(server.url());
  PostgresShop shop{url};
  PostgresAppend ours{shop.store, samples, 1, events};
  RawPostgresAppend raw{url, RawOrder::none, 1, payloads_of(samples, events)};
  const std::array<Subject*, 2> subjects{&ours, &raw};
  const int operations = events > 1 ? bench.sized(5, 100, 200) : bench.sized(10, 400, 1000);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(15),
                                            .operations = operations,
                                            .slices = bench.sized(2, 10, 20),
                                            .warm_up = operations});
  bench.add_rate({.name = name,
                  .what = std::to_string(events) +
                          " events an append, each with its pointer, by a "
                          "caller who is alone, against bare libpq in one pipelined round trip "
                          "without an order",
                  .mode = "full",
                  .place = Place::disk,
                  .goal = goal},
                 rounds[0], rounds[1], static_cast<double>(events));
}

/// Several ways with as many callers each.
struct Crowd {
  std::size_t stores = 1;
  std::size_t callers = 64;
  RawOrder order = RawOrder::none;
};

void measure_crowd(Bench& bench, const test::PostgresServer& server, const Crowd& crowd,
                   const std::string& url, const std::string& name, const std::string& what,
                   std::optional<Goal> goal) {
  if (!bench.begins(name)) return;
  const Samples samples{Codec::json};
  make_raw_postgres(server.url());
  std::vector<std::unique_ptr<PostgresShop>> shops;
  for (std::size_t i = 0; i < crowd.stores; ++i) {
    shops.push_back(std::make_unique<PostgresShop>(url));
  }
  Subjects ours;
  Subjects bare;
  for (std::size_t i = 0; i < crowd.callers; ++i) {
    Store& store = shops[i % crowd.stores]->store;
    ours.push_back(std::make_unique<PostgresAppend>(store, samples, 1000 + i, 1));
    bare.push_back(std::make_unique<RawPostgresAppend>(
        url, crowd.order, static_cast<std::int64_t>(i), payloads_of(samples, 1)));
  }
  const std::array<Way, 2> ways{at_once(ours), at_once(bare)};
  const Rates rates = compete(bench, ways);
  add_rates(bench, {.name = name, .what = what, .mode = "full", .place = Place::disk, .goal = goal},
            rates[0], rates[1]);
}

/// Reads pages as Stela does, with the columns that it reads, and a checksum of each row.
class BareRead final : public Subject {
 public:
  BareRead(const std::string& url, const std::string& where, std::int64_t last)
      : database_{url}, last_{last} {
    database_.execute("SET search_path = stela");
    const std::string sql =
        "SELECT e.sequence, e.version, e.recorded_at, e.published_before, e.checksum, e.event_id, "
        "e.causation_id, e.correlation_id, e.metadata, e.payload, s.name, k.category, k.type, "
        "k.version, k.publishes FROM events AS e JOIN streams AS s ON s.stream = e.stream "
        "JOIN event_kinds AS k ON k.kind = e.kind WHERE " +
        where + " ORDER BY e.sequence";
    database_.prepare("page", sql.c_str());
  }

  void run() override {
    count = 0;
    for (std::int64_t from = 1; from <= last_; from += page_rows) {
      const auto rows = database_.query(
          {"page", {std::to_string(from), std::to_string(std::min(last_, from + page_rows - 1))}});
      for (int row = 0; row < PQntuples(rows.get()); ++row) check(rows.get(), row);
      count += PQntuples(rows.get());
    }
  }

  std::int64_t count = 0;

 private:
  static constexpr std::int64_t page_rows = 1024;

  void check(PGresult* rows, int row) {
    XXH3_64bits_reset(state_.get());
    for (int column = 0; column < PQnfields(rows); ++column) {
      XXH3_64bits_update(state_.get(), PQgetvalue(rows, row, column),
                         static_cast<std::size_t>(PQgetlength(rows, row, column)));
    }
    sum_ ^= XXH3_64bits_digest(state_.get());
  }

  RawPostgres database_;
  const std::int64_t last_;
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_{XXH3_createState(),
                                                                               XXH3_freeState};
  std::uint64_t sum_ = 0;
};

class StelaRead final : public Subject {
 public:
  explicit StelaRead(std::function<EventRange()> read) : read_{std::move(read)} {}

  void run() override {
    count = 0;
    for (const StoredEvent& event : read_()) count += event.payload.empty() ? 0 : 1;
  }

  std::int64_t count = 0;

 private:
  const std::function<EventRange()> read_;
};

void measure_reading(Bench& bench, const test::PostgresServer& server) {
  if (!bench.begins("postgres.read")) return;
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  Store store = postgres::open(server.url(), {.schema = "stela"});
  const Outbox outbox{store};
  const auto measure = [&](const std::string& name, const char* what, Subject& ours, Subject& raw,
                           double events, int operations) {
    if (!bench.begins(name)) return;
    const std::array<Subject*, 2> subjects{&ours, &raw};
    const auto rounds = take_turns(subjects, {.rounds = bench.rounds(15),
                                              .operations = operations,
                                              .slices = std::min(operations, 5),
                                              .warm_up = operations});
    bench.add_rate(
        {.name = name, .what = what, .mode = "read", .place = Place::disk, .goal = at_least(0.85)},
        rounds[0], rounds[1], events);
  };
  const std::int64_t first = store.last_sequence().value() + 1;
  PostgresAppend append{store, samples, 900'001, 100};
  append.run();
  const std::int64_t last = store.last_sequence().value();
  const StreamId stream = basket_id(900'001).stream();
  StelaRead of_stream{[&] { return store.read_stream(stream); }};
  BareRead bare_stream{server.url(),
                       "e.stream = (SELECT t.stream FROM stela.streams AS t WHERE t.name = '" +
                           stream.name() + "') AND e.version BETWEEN $1 AND $2",
                       last - first + 1};
  measure("postgres.read_stream.100", "a stream of 100 events, against bare libpq", of_stream,
          bare_stream, 100, bench.sized(5, 200, 500));
  if (of_stream.count != bare_stream.count) throw std::logic_error{"the two reads differ"};

  for (int i = 0; i < bench.sized(2, 300, 1000); ++i) append.run();
  const std::int64_t all = store.last_sequence().value();
  StelaRead ours{[&] { return store.read_all(); }};
  BareRead raw{server.url(), "e.sequence BETWEEN $1 AND $2", all};
  measure("postgres.read_all", "all events with a checksum of each, against bare libpq", ours, raw,
          static_cast<double>(all), 1);
  if (ours.count != raw.count) throw std::logic_error{"the two reads differ"};
}

/// Events that nobody appended, and as many pointers that are gone; an old snapshot may still see
/// them.
void add_dead_rows(const test::PostgresServer& server, std::int64_t count) {
  RawPostgres database{server.url()};
  const std::string rows = "generate_series(1, " + std::to_string(count) + ") AS n";
  database.execute(
      "INSERT INTO stela.event_kinds VALUES (1000, 'old', 'old', 1, true); "
      "INSERT INTO stela.streams VALUES (1000000, 'old-1'); "
      "INSERT INTO stela.events SELECT n, 1000000, n, 0, 0, 0, 1000, "
      "gen_random_uuid(), NULL, NULL, NULL, '' FROM " +
      rows);
  database.execute(
      "INSERT INTO stela.outbox_messages (partition, sequence, stream) "
      "SELECT 0, n, 1000000 FROM " +
      rows);
  database.execute("UPDATE stela.outbox_partitions SET published_through = " +
                   std::to_string(count) + " WHERE partition = 0");
  database.execute("ANALYZE");
}

/// How long it takes to relay so many messages to a broker in memory.
double relay_rate(PostgresShop& shop, const Samples& samples, std::size_t stream, int appends) {
  PostgresAppend append{shop.store, samples, stream, 100};
  for (int i = 0; i < appends; ++i) append.run();
  MemoryPublisher publisher;
  Relay relay{shop.outbox, publisher, {.batch_size = 500, .window = 2000}};
  std::int64_t published = 0;
  const double taken = seconds([&] {
    while (published < appends * 100) published += relay.run_once().published;
  });
  return static_cast<double>(published) / taken;
}

void measure_dead_rows(Bench& bench) {
  const std::string name = "postgres.relay.dead_rows";
  if (!bench.begins(name)) return;
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  const std::int64_t dead = bench.sized(1'000, 1'000'000, 1'000'000);
  const int appends = bench.sized(2, 50, 100);
  std::vector<double> ours, raw, ratio;
  for (int round = 0; round < std::min(bench.rounds(3), 3); ++round) {
    const test::PostgresServer fresh{postgres_server_options};
    const test::PostgresServer old{postgres_server_options};
    PostgresShop fresh_shop{fresh.url()};
    PostgresShop old_shop{old.url()};
    add_dead_rows(old, dead);
    RawPostgres reader{old.url()};
    reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM stela.events");
    // What a relay does, in one step.
    RawPostgres{old.url()}.execute(
        "BEGIN; DELETE FROM stela.outbox_messages; "
        "UPDATE stela.outbox_partitions SET removed = published_through; COMMIT");
    raw.push_back(relay_rate(fresh_shop, samples, 1, appends));
    ours.push_back(relay_rate(old_shop, samples, 1, appends));
    ratio.push_back(ours.back() / raw.back());
  }
  bench.report().add({.name = name,
                      .what = "relaying a backlog to a broker in memory with a million dead rows "
                              "that an open snapshot still sees, against fresh tables",
                      .mode = "full",
                      .place = Place::disk,
                      .stela = spread_of(ours).median,
                      .raw = spread_of(raw).median,
                      .ratio = spread_of(ratio),
                      .goal = at_least(0.9)});
}

void measure_growth(Bench& bench) {
  const std::string name = "postgres.growth.append.1";
  if (!bench.begins(name)) return;
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  const test::PostgresServer small{postgres_server_options};
  const test::PostgresServer large{postgres_server_options};
  PostgresShop small_shop{small.url()};
  PostgresShop large_shop{large.url()};
  add_dead_rows(small, bench.sized(100, 100'000, 100'000));
  add_dead_rows(large, bench.sized(1'000, 1'000'000, 5'000'000));
  PostgresAppend of_large{large_shop.store, samples, 1, 1};
  PostgresAppend of_small{small_shop.store, samples, 1, 1};
  const std::array<Subject*, 2> subjects{&of_large, &of_small};
  const int operations = bench.sized(10, 400, 1000);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(15),
                                            .operations = operations,
                                            .slices = bench.sized(2, 10, 20),
                                            .warm_up = operations});
  bench.report().add({.name = name,
                      .what = "p50 of an append to a store of many events, against 0.1 million",
                      .mode = "full",
                      .place = Place::disk,
                      .unit = "µs",
                      .stela = p50s_of(rounds[0]).median / 1000,
                      .raw = p50s_of(rounds[1]).median / 1000,
                      .ratio = p50_ratio(rounds[0], rounds[1]),
                      .goal = at_most(1.2)});
}

void measure_appends(Bench& bench, const test::PostgresServer& server) {
  const std::string url = server.url();
  measure_alone(bench, server, 1, url, "postgres.append.1", at_least(0.7));
  measure_alone(bench, server, 100, url, "postgres.append.100", at_least(0.85));
  measure_crowd(bench, server, {.stores = 1, .callers = 64}, url, "postgres.group_commit.64",
                "64 threads of a process, in order, against 64 bare connections without",
                at_least(2.0));
  measure_crowd(bench, server, {.stores = 4, .callers = 64}, url, "postgres.group_commit.4x16",
                "4 stores with 16 threads each, as of 4 processes, in order, against 64 bare "
                "connections without",
                at_least(1.0));
  // As from another host.
  test::TcpProxy line{server.port()};
  line.delay(test::TcpProxy::Direction::answers, std::chrono::milliseconds{1});
  const std::string far =
      "host=127.0.0.1 user=postgres dbname=postgres port=" + std::to_string(line.port());
  measure_alone(bench, server, 1, far, "postgres.line.append.1", std::nullopt);
  measure_crowd(bench, server, {.stores = 1, .callers = 64}, far, "postgres.line.group_commit.64",
                "the same as group_commit.64, with 1 ms of a round trip to the server",
                std::nullopt);
}

void measure_schemes(Bench& bench, const test::PostgresServer& server) {
  struct Scheme {
    const char* name;
    RawOrder order;
    const char* what;
  };
  for (const Scheme& scheme :
       {Scheme{"none", RawOrder::none, "a sequence, which gives no order of commits"},
        Scheme{"table_lock", RawOrder::table_lock, "a table lock held through the flush"},
        Scheme{"advisory_lock", RawOrder::advisory_lock, "a lock held through the flush"},
        Scheme{"counter_row", RawOrder::counter_row, "a counter row held through the flush"}}) {
    measure_crowd(bench, server, {.stores = 8, .callers = 8, .order = scheme.order}, server.url(),
                  "postgres.scheme." + std::string{scheme.name},
                  std::string{"8 processes with a thread each, against "} + scheme.what,
                  std::nullopt);
  }
}

}  // namespace

void postgres_figures(Bench& bench) {
  if (!bench.begins("postgres")) return;
  const test::PostgresServer server{postgres_server_options};
  measure_reading(bench, server);
  measure_appends(bench, server);
  measure_schemes(bench, server);
  measure_dead_rows(bench);
  measure_growth(bench);
}

}  // namespace stela::bench

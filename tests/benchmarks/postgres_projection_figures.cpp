// Projecting on PostgreSQL: a replay into a table, against a bare loop with the same batches, and
// what a projector that takes part in each append costs.
#include "bench.hpp"
#include "decode.hpp"
#include "postgres_shop.hpp"
#include "raw_postgres.hpp"
#include "replays.hpp"

#include <stela/projections.hpp>

#include <array>
#include <stdexcept>
#include <string>

namespace stela::bench {
namespace {

constexpr const char* upsert =
    " AS p VALUES (?1, ?2, ?3) ON CONFLICT (product) DO UPDATE SET quantity = p.quantity + "
    "excluded.quantity, cents = p.cents + excluded.cents";
constexpr const char* columns = " (product TEXT PRIMARY KEY, quantity BIGINT, cents BIGINT)";
/// As many as Stela's pages have.
constexpr std::int64_t page_events = 1024;

class InTable {
 public:
  static constexpr ProjectorType projector_type{"in_table", 1};
  using Events = BasketEvents;

  void create(ReadModel& model) { model.execute(std::string{"CREATE TABLE {products}"} + columns); }
  void project(ReadModel& model, const Recorded<LineAdded>& e) {
    model.execute(sql_, e->product, e->quantity, e->quantity * e->unit_cents);
  }
  void project(ReadModel& model, const Recorded<LineDropped>& e) {
    model.execute(sql_, e->product, -e->quantity, -e->refund_cents);
  }

 private:
  std::string sql_ = std::string{"INSERT INTO {products}"} + upsert;
};

/// Reads kinds and payloads, decodes by hand, and runs a prepared statement for each event; each
/// page with a checkpoint is a transaction that doesn't wait for the disk, as in Stela's replay.
class BareTable final : public Subject {
 public:
  BareTable(const std::string& url, std::int64_t last) : database_{url}, last_{last} {
    database_.execute("SET synchronous_commit = off; CREATE SCHEMA bare_replay");
    database_.execute(std::string{"CREATE TABLE bare_replay.products"} + columns);
    database_.execute(
        "CREATE TABLE bare_replay.checkpoint (position BIGINT); "
        "INSERT INTO bare_replay.checkpoint VALUES (0)");
    database_.prepare("page",
                      "SELECT k.type = 'basket.line_added', e.payload FROM stela.events AS e "
                      "JOIN stela.event_kinds AS k ON k.kind = e.kind "
                      "WHERE e.sequence BETWEEN $1 AND $2 ORDER BY e.sequence");
    std::string sql = std::string{"INSERT INTO bare_replay.products"} + upsert;
    for (char& c : sql) c = c == '?' ? '$' : c;
    database_.prepare("put", sql.c_str());
    database_.prepare("note", "UPDATE bare_replay.checkpoint SET position = $1");
  }

  void run() override {
    database_.execute("TRUNCATE bare_replay.products");
    for (std::int64_t from = 1; from <= last_; from += page_events) {
      const std::string to = std::to_string(std::min(last_, from + page_events - 1));
      const auto rows = database_.query({"page", {std::to_string(from), to}});
      database_.execute("BEGIN");
      for (int row = 0; row < PQntuples(rows.get()); ++row) put(rows.get(), row);
      database_.query({"note", {to}});
      database_.execute("COMMIT");
    }
  }

 private:
  void put(const PGresult* rows, int row) {
    const bool was_added = *PQgetvalue(rows, row, 0) != 0;
    HandDecoder decoder{
        {PQgetvalue(rows, row, 1), static_cast<std::size_t>(PQgetlength(rows, row, 1))}};
    if (was_added) {
      LineAdded e;
      decoder.into(e);
      put(e.product, e.quantity, e.quantity * e.unit_cents);
    } else {
      LineDropped e;
      decoder.into(e);
      put(e.product, -e.quantity, -e.refund_cents);
    }
  }
  void put(const std::string& product, std::int64_t quantity, std::int64_t cents) {
    database_.query({"put", {product, std::to_string(quantity), std::to_string(cents)}});
  }

  RawPostgres database_;
  const std::int64_t last_;
};

void check_same(const std::string& url) {
  RawPostgres database{url};
  database.prepare("differing",
                   "SELECT FROM stela.products AS a FULL JOIN bare_replay.products AS b "
                   "USING (product, quantity, cents) WHERE a.product IS NULL OR b.product IS NULL");
  if (PQntuples(database.query({"differing"}).get()) > 0) {
    throw std::logic_error{"the two replays differ"};
  }
}

void measure_replay(Bench& bench) {
  const std::string name = "postgres.replay";
  if (!bench.begins(name)) return;
  const test::PostgresServer server{postgres_server_options};
  const Samples samples{Codec::portable_binary};
  const ContextScope scope{sample_context()};
  PostgresShop shop{server.url(), {.codec = Codec::portable_binary}};
  for (int i = 0, streams = bench.sized(3, 200, 1000); i < streams; ++i) {
    PostgresAppend{shop.store, samples, static_cast<std::size_t>(i), 100}.run();
  }
  RawPostgres{server.url()}.execute("VACUUM ANALYZE");
  const std::int64_t events = shop.store.last_sequence().value();
  Projections projections{shop.store};
  projections.add(InTable{});
  Replay replay{projections, "in_table"};
  BareTable bare{server.url(), events};
  (void)Replayer{projections}.run();
  bare.run();
  check_same(server.url());
  const std::array<Subject*, 2> subjects{&replay, &bare};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(9), .operations = 1, .slices = 1, .warm_up = 1});
  bench.add_rate({.name = name,
                  .what = "replay into a table, against a loop of prepared statements with decode",
                  .mode = "relaxed",
                  .place = Place::disk,
                  .goal = at_least(0.85)},
                 rounds[0], rounds[1], static_cast<double>(events));
}

void measure_inline(Bench& bench) {
  const std::string name = "postgres.inline.append.1";
  if (!bench.begins(name)) return;
  const test::PostgresServer server{postgres_server_options};
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  PostgresShop with{server.url(), {.schema = "projecting"}};
  PostgresShop without{server.url(), {.schema = "plain"}};
  Projections projections{with.store};
  projections.add_inline(InTable{});
  PostgresAppend ours{with.store, samples, 1, 1};
  PostgresAppend plain{without.store, samples, 1, 1};
  const std::array<Subject*, 2> subjects{&ours, &plain};
  const int operations = bench.sized(10, 400, 1000);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(15),
                                            .operations = operations,
                                            .slices = bench.sized(2, 10, 20),
                                            .warm_up = operations});
  bench.add_rate({.name = name,
                  .what = "an append of one event with a projector that takes part in it, against "
                          "one without",
                  .mode = "full",
                  .place = Place::disk},
                 rounds[0], rounds[1], 1);
}

}  // namespace

void postgres_projection_figures(Bench& bench) {
  measure_replay(bench);
  measure_inline(bench);
}

}  // namespace stela::bench

// Replays, filters and live projections against bare loops over the same tables.
#include "bench.hpp"
#include "decode.hpp"
#include "raw_checked.hpp"
#include "raw_events.hpp"
#include "replays.hpp"

#include <stela/outbox.hpp>
#include <stela/projections.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace stela::bench {
namespace {

constexpr const char* upsert =
    "VALUES (?1, ?2, ?3) ON CONFLICT (product) DO UPDATE SET quantity = quantity + "
    "excluded.quantity, cents = cents + excluded.cents";

/// The same in a table.
class InTable {
 public:
  static constexpr ProjectorType projector_type{"in_table", 1};
  using Events = BasketEvents;

  void create(ReadModel& model) {
    model.execute(
        "CREATE TABLE {products} (product TEXT PRIMARY KEY, quantity INTEGER, cents INTEGER) "
        "STRICT, WITHOUT ROWID");
  }
  void project(ReadModel& model, const Recorded<LineAdded>& e) {
    model.execute(sql_, e->product, e->quantity, e->quantity * e->unit_cents);
  }
  void project(ReadModel& model, const Recorded<LineDropped>& e) {
    model.execute(sql_, e->product, -e->quantity, -e->refund_cents);
  }

 private:
  std::string sql_ = std::string{"INSERT INTO {products} "} + upsert;
};

/// One event in a hundred is of this type.
struct Rare {
  static constexpr EventType event_type{"basket.rare", 1, local};
  std::int64_t n = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(n));
  }
};
class Rares {
 public:
  static constexpr ProjectorType projector_type{"rares", 1};
  using Events = EventSet<Rare>;
  explicit Rares(std::shared_ptr<std::int64_t> count) : count_{std::move(count)} {}
  void create(ReadModel&) {}
  void project(ReadModel&, const Recorded<Rare>&) { ++*count_; }

 private:
  std::shared_ptr<std::int64_t> count_;
};

/// A prepared statement for each event, in transactions of as many as Stela's pages have, with a
/// checkpoint in each.
class BareTable final : public Subject {
 public:
  explicit BareTable(const std::string& path) : reader_{path}, database_{path, {}} {
    database_.execute(
        "CREATE TABLE bare (product TEXT PRIMARY KEY, quantity INTEGER, cents INTEGER) "
        "STRICT, WITHOUT ROWID");
    database_.execute("CREATE TABLE bare_checkpoint (position INTEGER)");
    database_.execute("INSERT INTO bare_checkpoint VALUES (0)");
  }

  void run() override {
    database_.execute("DELETE FROM bare");
    RawStatement insert{database_, (std::string{"INSERT INTO bare "} + upsert).c_str()};
    std::int64_t position = 0;
    database_.execute("BEGIN IMMEDIATE");
    reader_.read_all([&](std::int64_t kind, std::string_view payload) {
      if (kind == reader_.added_kind()) {
        LineAdded e;
        HandDecoder{payload}.into(e);
        write(insert, e.product, e.quantity, e.quantity * e.unit_cents);
      } else {
        LineDropped e;
        HandDecoder{payload}.into(e);
        write(insert, e.product, -e.quantity, -e.refund_cents);
      }
      if (++position % 1024 == 0) commit(position);
    });
    commit(position);
    database_.execute("COMMIT");
  }

 private:
  static void write(RawStatement& insert, const std::string& product, std::int64_t quantity,
                    std::int64_t cents) {
    insert.bind_text(1, product);
    insert.bind(2, quantity);
    insert.bind(3, cents);
    insert.step();
    insert.reset();
  }
  void commit(std::int64_t position) {
    database_.execute("UPDATE bare_checkpoint SET position = " + std::to_string(position));
    database_.execute("COMMIT");
    database_.execute("BEGIN IMMEDIATE");
  }

  RawReader reader_;
  RawDatabase database_;
};

void check_same(const ProductTotals& stela, const ProductTotals& bare) {
  if (stela.size() != bare.size()) throw std::logic_error{"the two replays differ"};
  for (const auto& [product, total] : bare) {
    const auto found = stela.find(product);
    if (found == stela.end() || found->second.cents != total.cents) {
      throw std::logic_error{"the two replays differ at " + product};
    }
  }
}

auto by_stock_json() {
  return [decoder = std::make_unique<StockJsonDecoder>()](std::string_view payload, auto& e) {
    decoder->decode(payload, e);
  };
}

template <class Decode>
void measure_memory_replay(Bench& bench, const std::string& name, Codec codec, Goal goal,
                           const char* against, Decode (*decode)()) {
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  const std::size_t streams = bench.sized<std::size_t>(100, 5'000, 10'000);
  make_shop(path, {.codec = codec, .streams = streams, .events_each = 20});
  auto store = sqlite::open(path);
  const auto totals = std::make_shared<ProductTotals>();
  Projections projections{store};
  projections.add(InMemory{totals});
  Replay replay{projections, "in_memory"};
  BareMap<RawReader, Decode> bare{path, decode()};
  BareMap<RawCheckedReader, Decode> checked{path, decode()};
  replay.run();
  bare.run();
  checked.run();
  check_same(*totals, bare.totals);
  check_same(*totals, checked.totals);
  const std::array<Subject*, 3> subjects{&replay, &bare, &checked};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(9), .operations = 2, .slices = 2, .warm_up = 1});
  bench.add_rate({.name = name,
                  .what = std::string{"replay into memory, against "} + against,
                  .mode = "read",
                  .place = Place::disk,
                  .goal = goal},
                 rounds[0], rounds[1], static_cast<double>(streams * 20));
  bench.add_rate({.name = name + ".checked",
                  .what = "the same, the baseline reads all columns and checks the checksum too",
                  .mode = "read",
                  .place = Place::disk},
                 rounds[0], rounds[2], static_cast<double>(streams * 20));
}

void measure_table_replay(Bench& bench) {
  const std::string name = "replay.table.binary";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  const std::size_t streams = bench.sized<std::size_t>(100, 5'000, 10'000);
  make_shop(path, {.codec = Codec::portable_binary, .streams = streams, .events_each = 20});
  auto store = sqlite::open(path);
  Projections projections{store};
  projections.add(InTable{});
  Replay replay{projections, "in_table"};
  BareTable bare{path};
  const std::array<Subject*, 2> subjects{&replay, &bare};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(9), .operations = 1, .slices = 1, .warm_up = 1});
  bench.add_rate({.name = name,
                  .what = "replay into a table, against a loop of prepared statements with decode",
                  .mode = "relaxed",
                  .place = Place::disk,
                  .goal = at_least(0.85)},
                 rounds[0], rounds[1], static_cast<double>(streams * 20));
}

/// Decoding on a thread of its own, with stock JSON-sized work: JSON is decoded for longer than it
/// is projected.
void measure_overlap(Bench& bench) {
  const std::string name = "replay.decode_ahead";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  const std::size_t streams = bench.sized<std::size_t>(100, 5'000, 10'000);
  make_shop(path, {.codec = Codec::json, .streams = streams, .events_each = 20});
  auto store = sqlite::open(path);
  Projections projections{store};
  projections.add(InTable{});
  Replay two{projections, "in_table", true};
  Replay one{projections, "in_table", false};
  const std::array<Subject*, 2> subjects{&two, &one};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(9), .operations = 1, .slices = 1, .warm_up = 1});
  bench.add_rate({.name = name,
                  .what = "replay of JSON into a table with decode_ahead, against one thread",
                  .mode = "relaxed",
                  .place = Place::disk,
                  .goal = at_least(1.3)},
                 rounds[0], rounds[1], static_cast<double>(streams * 20));
}

void measure_filter(Bench& bench) {
  const std::string name = "replay.filtered";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  const std::size_t streams = bench.sized<std::size_t>(100, 5'000, 10'000);
  make_shop(path, {.codec = Codec::portable_binary, .streams = streams, .events_each = 20});
  auto store = sqlite::open(path);
  Outbox outbox{store};
  const std::size_t rares = streams * 20 / 99;
  std::string payload;
  codec::encode(Codec::portable_binary, Rare{1}, payload);
  for (std::size_t i = 0; i < rares; ++i) {
    const StreamId stream = basket_id(i % streams).stream();
    const NewEvent event{"basket.rare", 1, false, payload};
    const StreamAppend append{stream, ExpectedVersion::any(), {&event, 1}};
    store.append({.streams = {&append, 1}});
  }
  Projections projections{store};
  projections.add(InTable{});
  projections.add(Rares{std::make_shared<std::int64_t>(0)});
  Replay filtered{projections, "rares", false, {.event_types = {"basket.rare"}}};
  Replay whole{projections, "in_table"};
  const std::array<Subject*, 2> subjects{&filtered, &whole};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(9), .operations = 1, .slices = 1, .warm_up = 1});
  bench.add_rate({.name = name,
                  .what = "events passed: a replay of 1 % by type, against all into a table",
                  .mode = "read",
                  .place = Place::disk,
                  .goal = at_least(10)},
                 rounds[0], rounds[1], static_cast<double>(streams * 20 + rares));
}

/// How much later than its append an event stands in the model.
void measure_live(Bench& bench) {
  const std::string name = "live.commit_to_projected";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  auto store = sqlite::open(folder.file("shop.db"), {.durability = sqlite::Durability::relaxed});
  Projections projections{store};
  std::atomic<std::int64_t> seen{0};
  projections.add(InTable{});
  Runner runner{projections};
  runner.on_tick([&](const RunnerTick& tick) {
    if (tick.scanned > 0) seen.fetch_add(tick.scanned, std::memory_order_release);
  });
  const std::jthread running{[&](std::stop_token stop) { runner.run(stop); }};
  const Samples samples{Codec::json};
  const int events = bench.sized(20, 1'000, 5'000);
  std::vector<std::uint64_t> waits, appends;
  for (int i = 0; i < events; ++i) {
    const StreamId stream = basket_id(static_cast<std::size_t>(i)).stream();
    const StreamAppend append{stream, ExpectedVersion::any(),
                              samples.some(static_cast<std::size_t>(i), 1)};
    appends.push_back(static_cast<std::uint64_t>(1e9 * seconds([&] {
                                                   store.append({.streams = {&append, 1}});
                                                 })));
    waits.push_back(static_cast<std::uint64_t>(1e9 * seconds([&] {
                                                 while (seen.load(std::memory_order_acquire) <= i)
                                                   std::this_thread::yield();
                                               })));
  }
  const Round wait = round_of(waits);
  const Round append = round_of(appends);
  bench.report().add({.name = name,
                      .what = "p99 from the return of an append until it is projected",
                      .mode = "relaxed",
                      .place = Place::disk,
                      .unit = "ms",
                      .stela = wait.p99 / 1e6,
                      .raw = append.p99 / 1e6,
                      .ratio = {wait.p99 / append.p99, 0, 0},
                      .goal = limit(2),
                      .more = {{"p50_ms", wait.p50 / 1e6}}});
}

}  // namespace

void projection_figures(Bench& bench) {
  measure_memory_replay(bench, "replay.memory.binary", Codec::portable_binary, at_least(0.70),
                        "a bare scan, decoding by hand, and a map", by_hand);
  measure_memory_replay(bench, "replay.memory.json", Codec::json, at_least(6),
                        "the same loop with cereal's stock JSON archive", by_stock_json);
  measure_table_replay(bench);
  measure_overlap(bench);
  measure_filter(bench);
  measure_live(bench);
}

}  // namespace stela::bench

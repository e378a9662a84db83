// Histories, crashes, catch-up, replays and rebuilds in any order: whatever is in the tables is the
// fold of the events up to the checkpoint.
#include "projections/models.hpp"
#include "support/fault_vfs.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>
#include <thread>

namespace stela::chaos_test {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::orders_in;
using test::place;
using test::Totals;

const std::string replayed_type = "order.placed";

/// What `Totals` ends in, worked out without a projection.
class Fold {
 public:
  explicit Fold(int version) : version_{version} {}

  void operator()(const StoredEvent& event, const test::OrderPlaced& e) {
    rows_[std::string{event.stream.key()}] = {e.customer, e.total_cents * version_, 0, "-"};
  }
  void operator()(const StoredEvent& event, const test::OrderNoted&) {
    const auto row = rows_.find(std::string{event.stream.key()});
    if (row != rows_.end()) ++row->second.notes;
  }
  void operator()(const StoredEvent& event, const test::OrderShipped& e) {
    const auto row = rows_.find(std::string{event.stream.key()});
    if (row != rows_.end()) row->second.carrier = e.carrier;
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const auto& [id, row] : rows_) {
      all.push_back(id + ' ' + row.customer + ' ' + std::to_string(row.cents) + ' ' +
                    std::to_string(row.notes) + ' ' + row.carrier);
    }
    return all;
  }

 private:
  struct OrderRow {
    std::string customer;
    std::int64_t cents = 0;
    int notes = 0;
    std::string carrier;
  };
  int version_;
  std::map<std::string, OrderRow> rows_;
};

std::vector<std::string> fold(Store& store, int version, std::int64_t upto,
                              const std::string& only = {}) {
  Fold rows{version};
  EventDecoder<test::OrderEvents> decoder{store.conventions().codec};
  for (const StoredEvent& event : store.read_all({.to = GlobalSequence{upto}})) {
    if (!only.empty() && event.type() != only) continue;
    if (decoder.knows(event.kind)) decoder.decode(event, [&](const auto& e) { rows(event, e); });
  }
  return rows.lines();
}

/// Events of each stream, kept inline.
class Streams {
 public:
  static constexpr ProjectorType projector_type{"streams", 1};
  using Events = test::OrderEvents;
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {streams_seen} (id TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT");
  }
  void project(ReadModel& model, const Recorded<test::OrderPlaced>& e) { count(model, e.record()); }
  void project(ReadModel& model, const Recorded<test::OrderNoted>& e) { count(model, e.record()); }
  void project(ReadModel& model, const Recorded<test::OrderShipped>& e) {
    count(model, e.record());
  }

 private:
  static void count(ReadModel& model, const StoredEvent& event) {
    model.execute(
        "INSERT INTO {streams_seen} VALUES (?1, 1) ON CONFLICT (id) DO UPDATE SET n = n + 1",
        event.stream);
  }
};

/// Ships every order that costs an even sum.
class ShipEven {
 public:
  static constexpr ReactionType reaction_type{"ship_even"};
  using Events = EventSet<test::OrderPlaced>;
  void react(UnitOfWork& unit, const Recorded<test::OrderPlaced>& e) {
    if (e->total_cents % 2 == 0) unit.load(Id<test::Order>::of(e.stream())).ship("dhl");
  }
};

enum class Act : int { append, catch_up, replay, rebuild, last = rebuild };

struct Step {
  Act act = Act::append;
  int version = 1;
  int number = 0;
  std::uint64_t seed = 0;
  /// The handler's n-th call kills the process; 0: none does.
  int kill_at_call = 0;
  /// As does its n-th write to the database.
  int kill_at_write = 0;
};

/// Every process comes a minute later than the one before, whose leases have run out then.
void set_clock(testing::ManualClock& clock, int step) {
  clock.advance(std::chrono::minutes{step});
}

void append_some(Store& store, std::mt19937_64& dice) {
  for (int i = 0; i < 6; ++i) {
    const std::int64_t last = store.last_sequence().value();
    if (last == 0 || dice() % 2 == 0) {
      place(store, std::to_string(1000 + last), static_cast<std::int64_t>(1 + dice() % 100));
      continue;
    }
    const GlobalSequence any{static_cast<std::int64_t>(1 + dice() % static_cast<unsigned>(last))};
    EventRange range = store.read_at({&any, 1});
    test::note(store, std::string{range.next_page()[0].stream.key()});
  }
}

void take_step(const std::string& path, const Step& step) {
  testing::ManualClock clock;
  set_clock(clock, step.number);
  test::DieAtNthWrite death{step.kill_at_write};
  const test::FaultVfs vfs{death};
  auto store = sqlite::open(
      path, {.durability = sqlite::Durability::relaxed, .clock = &clock, .vfs = vfs.name()});
  std::mt19937_64 dice{step.seed};
  int calls = 0;
  const Totals<1>::Hook hook = [&](ReadModel&, const StoredEvent&) {
    if (++calls == step.kill_at_call) raise(SIGKILL);
  };
  Projections projections{store};
  if (step.version == 1) {
    projections.add(Totals<1>{hook});
  } else {
    projections.add(Totals<2>{hook});
  }
  projections.add(Counts{});
  projections.add_inline(Streams{});
  projections.add_reaction(ShipEven{}, {.start = ReactionStart::beginning});
  switch (step.act) {
    case Act::append:
      append_some(store, dice);
      break;
    case Act::catch_up:
      Runner{projections, {.drop_after = 0ms}}.run_once();
      break;
    case Act::replay:
      (void)Replayer{projections}.run({.projectors = {"totals"},
                                       .filter = {.event_types = {replayed_type}},
                                       .decode_ahead = dice() % 2 == 0});
      break;
    case Act::rebuild:
      (void)Replayer{projections}.run();
      break;
  }
}

std::vector<std::string> table(Store& store, const std::string& name) {
  return test::lines(ModelReader{store}.query("SELECT * FROM \"" + name + "\" ORDER BY id"));
}

/// Everything that can be said at any time, whoever was killed where.
void expect_sound(const std::string& path) {
  auto store = sqlite::open(path);
  for (const ProjectorStatus& one : ProjectionOperations{store}.status()) {
    const std::string tables = one.name + '@' + std::to_string(one.build) + '.';
    if (one.name == "totals" && one.state != BuildState::retired) {
      EXPECT_EQ(table(store, tables + "orders"),
                fold(store, one.version, one.position.value(),
                     one.state == BuildState::scratch ? replayed_type : std::string{}))
          << tables << ' ' << to_string(one.state) << " at " << one.position.value();
    }
    if (one.name == "totals" && one.state == BuildState::living) {
      EXPECT_EQ(orders_in(store), table(store, tables + "orders"));
    }
    if (one.name == "counts" && one.state != BuildState::retired &&
        one.state != BuildState::scratch) {
      Projections none{store};
      std::int64_t counted = 0;
      for (const EventTypeCount& type : Replayer{none}.dry_run({.to = one.position})) {
        if (type.type != "order.noted") counted += type.events;
      }
      EXPECT_EQ(ModelReader{store}.value<std::int64_t>("SELECT coalesce(sum(n), 0) FROM \"" +
                                                       tables + "counts\""),
                counted);
    }
    if (one.name == "streams" && one.state == BuildState::living) {
      EXPECT_EQ(one.position, store.last_sequence());
      EXPECT_EQ(
          ModelReader{store}.value<std::int64_t>("SELECT coalesce(sum(n), 0) FROM streams_seen"),
          store.last_sequence().value());
    }
    EXPECT_EQ(one.error, "");
  }
}

/// Each order that costs an even sum was shipped once, and no other.
void expect_reactions_done(const std::string& path) {
  auto store = sqlite::open(path);
  std::map<std::string, int> wanted, shipped;
  EventDecoder<test::OrderEvents> decoder{store.conventions().codec};
  for (const StoredEvent& event : store.read_all()) {
    decoder.decode(event, [&]<class E>(const E& e) {
      if constexpr (std::is_same_v<E, test::OrderPlaced>) {
        if (e.total_cents % 2 == 0) wanted[event.stream.name()] = 1;
      } else if constexpr (std::is_same_v<E, test::OrderShipped>) {
        ++shipped[event.stream.name()];
      }
    });
  }
  EXPECT_EQ(shipped, wanted);
}

TEST(Chaos, KeepsTheTablesEqualToTheEventsWhereverItKills) {
  constexpr int histories = 80;
  constexpr int steps = 12;
  int kills = 0;
  for (std::uint64_t seed = 1; seed <= histories; ++seed) {
    const test::TempDir dir = test::TempDir::in_memory();
    const std::string path = dir.file("a.db");
    std::mt19937_64 dice{seed};
    int version = 1;
    for (int number = 0; number < steps; ++number) {
      if (number > steps / 2 && dice() % 3 == 0) version = 2;
      const bool dies = number > 0 && dice() % 3 != 0;
      const Step step{.act = number == 0 ? Act::append : Act{static_cast<int>(dice() % 4)},
                      .version = version,
                      .number = number,
                      .seed = dice(),
                      .kill_at_call = dies ? static_cast<int>(1 + dice() % 30) : 0,
                      .kill_at_write = dies ? static_cast<int>(dice() % 60) : 0};
      test::Process child{[&] { take_step(path, step); }};
      const int result = child.wait();
      ASSERT_TRUE(result == 0 || (dies && result == 128 + SIGKILL))
          << "seed " << seed << " step " << number;
      if (result != 0) ++kills;
      expect_sound(path);
      ASSERT_FALSE(HasFailure()) << "seed " << seed << " step " << number;
    }
    for (int number = steps; number < steps + 2; ++number) {
      test::Process child{
          [&] { take_step(path, {.act = Act::catch_up, .version = version, .number = number}); }};
      ASSERT_EQ(child.wait(), 0) << "seed " << seed;
    }
    expect_sound(path);
    expect_reactions_done(path);
    auto store = sqlite::open(path);
    EXPECT_EQ(orders_in(store), fold(store, version, store.last_sequence().value()));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GE(kills, 200) << "too few processes were killed";
  std::cout << kills << " processes were killed\n";
}

TEST(Chaos, ReplaysWhileThreadsAppendAndLiveProjectorsRun) {
  const test::TempDir dir = test::TempDir::in_memory();
  auto store = sqlite::open(dir.file("a.db"));
  Projections projections{store};
  projections.add(Totals<1>{});
  projections.add(Counts{});
  Runner runner{projections};
  {
    std::jthread running{[&](std::stop_token stop) { runner.run(stop); }};
    std::vector<std::jthread> appending;
    for (int thread = 0; thread < 8; ++thread) {
      appending.emplace_back([&, thread] {
        for (int i = 0; i < 40; ++i) {
          const std::string key = std::to_string(100 * thread + i);
          place(store, key);
          test::ship(store, key);
        }
      });
    }
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(Replayer{projections}.run({.projectors = {"totals"}}).is_complete);
      (void)Replayer{projections}.run({.projectors = {"totals"},
                                       .filter = {.event_types = {replayed_type}},
                                       .decode_ahead = true});
    }
    appending.clear();
    EXPECT_TRUE(projections.wait_for("totals", store.last_sequence(), 60s));
  }
  runner.run_once();

  EXPECT_EQ(store.last_sequence(), GlobalSequence{8 * 40 * 2});
  EXPECT_EQ(orders_in(store), fold(store, 1, store.last_sequence().value()));
  EXPECT_EQ(ModelReader{store}.value<int>("SELECT sum(n) FROM counts"), 8 * 40 * 2);
}

TEST(Chaos, AFullDiskAtEachWriteLosesNothing) {
  int failures = 0;
  for (int nth = 1;; ++nth) {
    const test::TempDir dir = test::TempDir::in_memory();
    test::FailNth disk;
    test::FaultVfs vfs{disk};
    auto store = sqlite::open(dir.file("a.db"), {.vfs = vfs.name()});
    Projections projections{store};
    projections.add(Totals<1>{});
    for (int i = 0; i < 5; ++i) place(store, std::to_string(i));
    Runner runner{projections};
    disk.arm({.operations = {test::FileOperation::write},
              .verdict = test::Verdict::disk_full,
              .nth = nth});
    try {
      runner.run_once();
    } catch (const StoreFull&) {
      ++failures;
    }
    const bool fired = disk.has_fired();
    disk.disarm();
    const auto status = ProjectionOperations{store}.status().at(0);
    EXPECT_EQ(orders_in(store), fold(store, 1, status.position.value())) << "write " << nth;
    EXPECT_FALSE(status.stopped) << "the handler isn't to blame";

    runner.run_once();
    EXPECT_EQ(orders_in(store), fold(store, 1, 5)) << "write " << nth;
    if (!fired) break;
    ASSERT_LT(nth, 200);
  }
  EXPECT_GT(failures, 3);
}

}  // namespace
}  // namespace stela::chaos_test

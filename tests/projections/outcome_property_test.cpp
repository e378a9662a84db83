// Random histories of loads, saves, units, nested transactions, repeated ids and failing files, by
// two stores of one database: after each step, what any object in memory says is what a store that
// was opened just now reads.
#include "support/fault_vfs.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/projections.hpp>

#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace stela {
namespace {

using test::FileOperation;

constexpr std::array<std::string_view, 4> type_names{"page.begun", "page.written", "page.torn",
                                                     "page.burnt"};

template <int n>
struct Page {
  static constexpr EventType event_type{type_names[n], 1, should_publish};
  std::string text;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(text));
  }
};
using AnyPage = EventSet<Page<0>, Page<1>, Page<2>, Page<3>>;

template <int n>
std::string shown(const Page<n>& page) {
  return std::to_string(n) + ':' + page.text;
}

struct DiaryState {
  static constexpr int snapshot_version = 1;
  std::vector<std::string> pages;

  void apply(const Page<0>& page) { pages.push_back(shown(page)); }
  void apply(const Page<1>& page) { pages.push_back(shown(page)); }
  void apply(const Page<2>& page) { pages.push_back(shown(page)); }
  void apply(const Page<3>& page) { pages.push_back(shown(page)); }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(pages));
  }
};

class Diary : public AggregateRoot<DiaryState, AnyPage> {
 public:
  static constexpr std::string_view category = "diary";
  static constexpr auto snapshot_policy = SnapshotPolicy::every(2);
  using AggregateRoot::AggregateRoot;

  void write(int type, std::string text) {
    if (type == 0) record(Page<0>{std::move(text)});
    if (type == 1) record(Page<1>{std::move(text)});
    if (type == 2) record(Page<2>{std::move(text)});
    if (type == 3) record(Page<3>{std::move(text)});
  }
};

/// Copies three types of four into a table, inline.
class Copies {
 public:
  static constexpr ProjectorType projector_type{"copies", 1};
  using Events = EventSet<Page<0>, Page<1>, Page<2>>;

  void create(ReadModel& model) {
    model.execute("CREATE TABLE {copies} (at INTEGER PRIMARY KEY, page TEXT NOT NULL) STRICT");
  }
  void project(ReadModel& model, const Recorded<Page<0>>& page) { copy(model, page); }
  void project(ReadModel& model, const Recorded<Page<1>>& page) { copy(model, page); }
  void project(ReadModel& model, const Recorded<Page<2>>& page) { copy(model, page); }

 private:
  template <class E>
  static void copy(ReadModel& model, const Recorded<E>& page) {
    model.execute("INSERT INTO {copies} VALUES (?1, ?2)", page.sequence().value(), shown(*page));
  }
};

struct RollBack {};

/// A process, as far as the database knows: a store, its projector, and what its listener heard.
struct Process {
  explicit Process(const std::string& path, const std::string& vfs)
      : store{sqlite::open(path, {.busy_timeout = std::chrono::milliseconds{0}, .vfs = vfs})},
        projections{store} {
    projections.add_inline(Copies{});
    listening = store.on_commit([this](const CommitNotice& notice) {
      EventDecoder<AnyPage> decoder{Codec::json};
      for (const StoredEvent& event : notice.events) {
        decoder.decode(event,
                       [&](const auto& page) { heard[event.sequence.value()] = shown(page); });
      }
    });
  }

  sqlite::Store store;
  Projections projections;
  std::map<std::int64_t, std::string> heard;
  Subscription listening;
};

/// An aggregate in memory, and whether it may say that it can't be used.
struct Held {
  Diary diary;
  bool may_be_unusable = false;
};

class World {
 public:
  explicit World(unsigned seed) : random_{seed} {
    for (auto& process : processes_) reopen(process);
  }

  void step() {
    auto& process = processes_[up_to(1)];
    const bool faulty = up_to(3) == 0;
    if (faulty) arm();
    bool in_doubt = false;
    try {
      act(process->store, 0);
    } catch (const CommitInDoubt&) {
      in_doubt = true;
    } catch (const RollBack&) {
    } catch (const ConcurrencyConflict&) {
    } catch (const UsageError&) {
    } catch (const Error& e) {
      if (!faulty) ADD_FAILURE() << "without any fault: " << e.what();
    }
    faults_.disarm();
    if (in_doubt) {
      doubts_ = true;
      for (Held& held : held_) held.may_be_unusable = true;
      take_notices(*process);
      reopen(process);
    }
    check();
  }

  int usable() const { return usable_; }
  int asked() const { return asked_; }

 private:
  int up_to(int largest) { return std::uniform_int_distribution<int>{0, largest}(random_); }
  bool one_in(int count) { return up_to(count - 1) == 0; }
  std::string text() { return "text-" + std::to_string(++texts_); }
  Id<Diary> some_id() { return Id<Diary>::from(std::to_string(up_to(2))); }
  std::string append_id() { return one_in(4) ? "id-" + std::to_string(up_to(8)) : ""; }

  void arm() {
    static const std::vector<std::vector<FileOperation>> operations{
        {FileOperation::write},
        {FileOperation::sync},
        {FileOperation::read},
        {FileOperation::shm_lock},
        {FileOperation::write, FileOperation::sync}};
    faults_.arm({operations[static_cast<std::size_t>(up_to(4))],
                 one_in(2) ? test::Verdict::io_error : test::Verdict::disk_full, 1 + up_to(6),
                 one_in(3)});
  }

  void reopen(std::unique_ptr<Process>& process) {
    process.reset();
    process = std::make_unique<Process>(path_, vfs_.name());
  }

  // --- what is done

  /// One thing, or inside a transaction several.
  void act(EventLog& log, int depth) {
    switch (up_to(9)) {
      case 0:
        return load(log, depth);
      case 1:
        held_.push_back({Diary{some_id()}});
        return some_held().diary.write(up_to(3), text());
      case 2:
        if (held_.size() > 1)
          held_.erase(held_.begin() + up_to(static_cast<int>(held_.size()) - 1));
        return held_.push_back(some_held());
      case 3:
      case 4:
        return some_held().diary.write(up_to(3), text());
      case 5:
      case 6:
        return save(log, some_held());
      case 7:
        return unit(log);
      default:
        return transact(log, depth);
    }
  }

  Held& some_held() {
    if (held_.empty()) held_.push_back({Diary{some_id()}});
    if (held_.size() > 12) held_.erase(held_.begin());
    return held_[static_cast<std::size_t>(up_to(static_cast<int>(held_.size()) - 1))];
  }

  void load(EventLog& log, int depth) {
    if (auto found = Repository<Diary>{log}.find(some_id())) {
      held_.push_back({std::move(*found), depth > 0});
    }
  }

  void save(EventLog& log, Held& held) {
    const std::string id = append_id();
    held.may_be_unusable = held.may_be_unusable || !id.empty();
    Repository<Diary>{log}.save(held.diary, {.append_id = id});
  }

  void unit(EventLog& log) {
    UnitOfWork unit{log};
    if (Diary* const diary = unit.find(some_id())) diary->write(up_to(3), text());
    const Id<Diary> other = Id<Diary>::from("unit-" + std::to_string(up_to(1)));
    unit.append(other.stream(), ExpectedVersion::any(), Page<2>{text()});
    if (one_in(2)) {
      unit.in_transaction([&](Transaction&) {
        if (one_in(3)) throw RollBack{};
      });
    }
    unit.commit({.append_id = append_id()});
  }

  /// What fails inside is mostly caught: the transaction goes on without it.
  void transact(EventLog& log, int depth) {
    if (depth > 2) return;
    log.transact([&](Transaction& transaction) {
      for (int i = up_to(4); i >= 0; --i) {
        try {
          act(transaction, depth + 1);
        } catch (const RollBack&) {
        } catch (const ConcurrencyConflict&) {
        } catch (const UsageError&) {
        }
        for (const Held& held : held_) expect_true(transaction, held);
      }
      if (one_in(3)) throw RollBack{};
    });
  }

  // --- what must hold

  void check() {
    auto store = sqlite::open(path_);
    for (const Held& held : held_) expect_true(store, held);
    for (int i = 0; i <= 2; ++i) {
      if (const auto loaded = Repository<Diary>{store}.find(Id<Diary>::from(std::to_string(i)))) {
        expect_true(store, {*loaded});
      }
    }
    check_rows(store);
    for (auto& process : processes_) take_notices(*process);
    std::map<std::int64_t, std::string> stored;
    EventDecoder<AnyPage> decoder{Codec::json};
    for (const StoredEvent& event : store.read_all()) {
      decoder.decode(event,
                     [&](const auto& page) { stored[event.sequence.value()] = shown(page); });
    }
    if (doubts_) {
      for (const auto& [at, page] : heard_) EXPECT_EQ(stored[at], page) << "heard of event " << at;
    } else {
      EXPECT_EQ(heard_, stored);
    }
  }

  void take_notices(Process& process) {
    heard_.insert(process.heard.begin(), process.heard.end());
    process.heard.clear();
  }

  /// The state of a usable aggregate is that of the events up to its version, and of its changes.
  void expect_true(EventLog& log, const Held& held) {
    ++asked_;
    StreamVersion version;
    try {
      version = held.diary.version();
    } catch (const UsageError& e) {
      EXPECT_TRUE(held.may_be_unusable) << e.what();
      return;
    }
    ++usable_;
    DiaryState state;
    EventDecoder<AnyPage> decoder{Codec::json};
    StreamVersion reached;
    for (const StoredEvent& event : log.read_stream(held.diary.stream(), {.to = version})) {
      decoder.decode(event, [&](const auto& page) { state.apply(page); });
      reached = event.version;
    }
    EXPECT_EQ(reached, version) << held.diary.stream().name();
    for (const auto& change : held.diary.changes()) {
      std::visit([&](const auto& page) { state.apply(page); }, change);
    }
    EXPECT_EQ(held.diary.state().pages, state.pages) << held.diary.stream().name();
  }

  void check_rows(sqlite::Store& store) {
    std::vector<std::string> expected;
    EventDecoder<Copies::Events> decoder{Codec::json};
    for (const StoredEvent& event : store.read_all()) {
      if (!decoder.knows(event.kind)) continue;
      decoder.decode(event, [&](const auto& page) { expected.push_back(shown(page)); });
    }
    std::vector<std::string> rows;
    for (const Row row : ModelReader{store}.query("SELECT page FROM copies ORDER BY at")) {
      rows.push_back(std::get<std::string>(row.cell("page")));
    }
    EXPECT_EQ(rows, expected);
  }

  std::mt19937 random_;
  const test::TempDir dir_ = test::TempDir::in_memory();
  const std::string path_ = dir_.file("diaries.db");
  test::FailNth faults_;
  test::FaultVfs vfs_{faults_};
  std::array<std::unique_ptr<Process>, 2> processes_;
  std::vector<Held> held_;
  std::map<std::int64_t, std::string> heard_;
  bool doubts_ = false;
  int texts_ = 0;
  int usable_ = 0;
  int asked_ = 0;
};

TEST(Outcome, IsWhatEveryObjectInMemorySaysAfterEachStep) {
  int usable = 0;
  int asked = 0;
  for (unsigned seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world{seed};
    for (int step = 0; step < 60 && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      world.step();
    }
    usable += world.usable();
    asked += world.asked();
  }
  // What says nothing says nothing wrong.
  EXPECT_GT(usable, asked / 2);
}

}  // namespace
}  // namespace stela

// What becomes of personal data in read models, reactions and timers when its subject is forgotten.
#include "support/engine.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/privacy.hpp>
#include <stela/projections.hpp>
#include <stela/projections_testing/process_scenario.hpp>
#include <stela/projections_testing/projector_scenario.hpp>
#include <stela/testing/memory_keys.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace stela::forget_test {
namespace {

using ::stela::testing::MemoryKeys;
using ::stela::testing::ProjectorScenario;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Guest {
  static constexpr std::string_view category = "guest";
};

struct Registered {
  static constexpr EventType event_type{"guest.registered", 1, local};
  Personal<std::string> name;
  int room = 0;
  static constexpr auto subject = stream_is_subject;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(name), CEREAL_NVP(room));
  }
};

/// Keeps names sealed: there is nothing to forget.
struct SealedNames {
  static constexpr ProjectorType projector_type{"sealed_names", 1};
  using Events = EventSet<Registered>;
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {guests} (room INTEGER PRIMARY KEY, name TEXT)");
  }
  void project(ReadModel& model, const Recorded<Registered>& event) {
    model.execute("INSERT INTO {guests} VALUES (?1, ?2)", event->room, event->name);
  }
};

/// Keeps them in clear, and removes them.
struct ClearNames {
  static constexpr ProjectorType projector_type{"clear_names", 1};
  using Events = EventSet<Registered>;
  void create(ReadModel& model) {
    model.execute("CREATE TABLE {names} (guest TEXT, room INTEGER, name TEXT)");
  }
  void project(ReadModel& model, const Recorded<Registered>& event) {
    model.execute("INSERT INTO {names} VALUES (?1, ?2, ?3)", event.stream(), event->room,
                  event->name.value_or("(forgotten)"));
  }
  void forget(ReadModel& model, const StreamId& subject) {
    model.execute("UPDATE {names} SET name = '(forgotten)' WHERE guest = ?1", subject);
  }
};

/// Keeps them in clear for ever.
struct KeptNames {
  static constexpr ProjectorType projector_type{"kept_names", 1};
  using Events = EventSet<Registered>;
  void create(ReadModel& model) { ClearNames{}.create(model); }
  void project(ReadModel& model, const Recorded<Registered>& event) {
    ClearNames{}.project(model, event);
  }
};

constexpr std::string_view names = "SELECT name FROM names ORDER BY room";

TEST(ForgettingProjector, RemovesWhatItKeepsInClear) {
  ProjectorScenario{ClearNames{}}
      .given("guest-m1", Registered{"Margaret", 1})
      .given("guest-a1", Registered{"Ann", 2})
      .then(names, {"Margaret", "Ann"})
      .forget("guest-m1")
      .then(names, {"(forgotten)", "Ann"})
      .equals_rebuild()
      .refuses<SubjectForgotten>("guest-m1", "guest-m1", Registered{"Margaret", 3});
}

TEST(ForgettingProjector, IsCaughtIfItKeepsWhatIsForgotten) {
  ProjectorScenario scenario{KeptNames{}};
  scenario.given("guest-m1", Registered{"Margaret", 1}).forget("guest-m1");
  EXPECT_THROW(scenario.equals_rebuild(), ::stela::testing::ScenarioFailed);
}

/// A key store that may be an older one.
class Losable final : public Keyring {
 public:
  std::shared_ptr<const SubjectKey> key_of(const Subject& subject) override {
    return keys_.key_of(subject);
  }
  std::shared_ptr<const SubjectKey> find(const KeyId& id) override {
    if (is_lost) throw KeyMissing{"the key is missing"};
    return keys_.find(id);
  }
  std::vector<KeyInfo> keys_of(std::string_view subject) override { return keys_.keys_of(subject); }
  std::size_t destroy(std::span<const KeyId> ids) override { return keys_.destroy(ids); }
  void allow_again(std::string_view subject) override { keys_.allow_again(subject); }

  bool is_lost = false;

 private:
  MemoryKeys keys_;
};

class ForgettingRunner : public ::testing::Test {
 protected:
  template <class P>
  void run(P projector) {
    Projections projections{store};
    projections.add(std::move(projector));
    Runner{projections}.run_once();
  }
  std::vector<std::string> read(std::string_view sql) {
    std::vector<std::string> all;
    const Rows rows = ModelReader{store}.query(sql);
    for (const Row row : rows) all.push_back(row.get<std::string>("name"));
    return all;
  }
  void record(const ::stela::testing::Stream& stream, const Registered& event) {
    UnitOfWork unit{store};
    unit.append(stream.id, ExpectedVersion::any(), event);
    unit.commit();
  }

  Losable keys;
  Store store = test::open_empty({.keys = &keys});
};

TEST_F(ForgettingRunner, ReachesTheFenceInTheOrderOfTheLog) {
  record("guest-m1", {"Margaret", 1});
  record("guest-a1", {"Ann", 2});
  run(ClearNames{});
  EXPECT_THAT(read(names), ElementsAre("Margaret", "Ann"));
  forget(store, StreamId::parse("guest-m1"), {.by = "dpo", .reason = ""});
  run(ClearNames{});
  EXPECT_THAT(read(names), ElementsAre("(forgotten)", "Ann"));
}

TEST_F(ForgettingRunner, ReadsWhatWasBoundSealed) {
  record("guest-m1", {"Margaret", 1});
  run(SealedNames{});
  const std::vector<std::string> stored = read("SELECT name FROM guests");
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_THAT(stored[0], ::testing::StartsWith("~s1."));
  const auto name = [&] { return read_sealed_text<std::string>(stored[0], &keys).value_or("?"); };
  EXPECT_EQ(name(), "Margaret");
  forget(store, StreamId::parse("guest-m1"), {.by = "dpo", .reason = ""});
  EXPECT_EQ(name(), "?");
}

TEST_F(ForgettingRunner, WaitsForAKeyThatIsMissing) {
  record("guest-m1", {"Margaret", 1});
  keys.is_lost = true;
  EXPECT_THROW(run(ClearNames{}), KeyMissing);
  keys.is_lost = false;
  run(ClearNames{});
  EXPECT_THAT(read(names), ElementsAre("Margaret"));
}

// --- timers

struct Reminder {
  static constexpr TimerType timer_type{"reminder", 1};
  Personal<std::string> name;
  static constexpr auto subject = stream_is_subject;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(name));
  }
};

struct Reminded {
  static constexpr EventType event_type{"guest.reminded", 1, local};
  Personal<std::string> name;
  static constexpr auto subject = stream_is_subject;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(name));
  }
};

struct Reminders {
  static constexpr ProcessType process_type{"reminders"};
  using Events = EventSet<Registered>;
  using Timers = TimerSet<Reminder>;
  void react(Process& process, const Recorded<Registered>& event) {
    process.set(Reminder{event->name}, std::chrono::hours{1});
  }
  void due(Process& process, const Reminder& reminder) {
    process.unit().append(StreamId::parse(process.key()), ExpectedVersion::any(),
                          Reminded{reminder.name});
  }
};

TEST(PersonalTimer, IsSealedToItsInstance) {
  ::stela::testing::ProcessScenario scenario{Reminders{}};
  scenario.given("guest-m1", Registered{"Margaret", 1});
  for (const Row row : Rows{ModelReader{scenario.store()}.query(
           "SELECT CAST(payload AS TEXT) AS payload FROM projection_timers")}) {
    EXPECT_THAT(row.get<std::string>("payload"), HasSubstr("~s1."));
  }
  scenario.after(std::chrono::hours{2})
      .then(::stela::testing::on("guest-m1", Reminded{"Margaret"}));
}

}  // namespace
}  // namespace stela::forget_test

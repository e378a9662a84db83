// Events that changed: old payloads and old names, read as the events of today.
#include "support/histories.hpp"

#include <stela/testing/decision_scenario.hpp>
#include <stela/testing/memory_store.hpp>

#include <cereal/types/vector.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace stela::evolution_test {
namespace {

using test::append;
using test::message_of;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Three shapes of one event: a whole name; first and last; a list. It was once called otherwise.
struct NamedV1 {
  static constexpr EventType event_type{"person.baptised", 1};
  std::string name;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(name));
  }
};
struct NamedV2 {
  static constexpr EventType event_type{"person.named", 2};
  static constexpr auto former_names = names("person.baptised");
  using Supersedes = NamedV1;
  static NamedV2 upcast(NamedV1 old) {
    const std::size_t space = old.name.find(' ');
    if (space == std::string::npos) throw std::domain_error{"only one name"};
    return {old.name.substr(0, space), old.name.substr(space + 1)};
  }
  std::string first;
  std::string last;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(first), CEREAL_NVP(last));
  }
};
struct Named {
  static constexpr EventType event_type{"person.named", 3};
  using Supersedes = NamedV2;
  static Named upcast(NamedV2 old) { return {{std::move(old.first), std::move(old.last)}}; }
  std::vector<std::string> words;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(words));
  }
};
/// Only the name changed.
struct Moved {
  static constexpr EventType event_type{"person.moved", 1};
  static constexpr auto former_names = names("person.relocated", "person.resettled");
  std::string to;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(to));
  }
};

struct PersonState {
  std::vector<std::string> seen;
  void apply(const Named& e) {
    std::string all = "named";
    for (const std::string& word : e.words) all.append("|").append(word);
    seen.push_back(all);
  }
  void apply(const Moved& e) { seen.push_back("moved|" + e.to); }
};
class Person : public AggregateRoot<PersonState, EventSet<Named, Moved>> {
 public:
  static constexpr std::string_view category = "person";
  using AggregateRoot::AggregateRoot;
};

struct Firm {
  static constexpr std::string_view category = "firm";
};
/// A program that knows a second version, and records the first.
struct HiredV1 {
  static constexpr EventType event_type{"person.engaged", 1, should_publish};
  Id<Firm> by;
  static constexpr auto tags = stela::tags(&HiredV1::by);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(by));
  }
};
struct Hired {
  static constexpr EventType event_type{"person.hired", 2};
  static constexpr auto former_names = names("person.engaged");
  using Supersedes = HiredV1;
  static Hired upcast(HiredV1 old) { return {old.by, 40}; }
  static HiredV1 record_as(const Hired& hired) { return {hired.by}; }
  Id<Firm> by;
  int hours = 0;
  static constexpr auto tags = stela::tags(&Hired::by);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(by), CEREAL_NVP(hours));
  }
};
struct EmployeeState {
  int hours = 0;
  void apply(const Hired& hired) { hours += hired.hours; }
};
class Employee : public AggregateRoot<EmployeeState, EventSet<Hired>> {
 public:
  static constexpr std::string_view category = "person";
  using AggregateRoot::AggregateRoot;
  void hire(const std::string& by, int hours) { record(Hired{Id<Firm>::from(by), hours}); }
};

struct Staff {
  using Events = EventSet<Hired>;
  Id<Firm> firm;
  static constexpr auto tags = stela::tags(&Staff::firm);
  int hours = 0;
  void apply(const Hired& hired) { hours += hired.hours; }
};

class Evolution : public ::testing::Test {
 protected:
  void stored(std::string_view type, int version, std::string_view payload) {
    append(store, "person-1", {NewEvent{type, version, false, payload}});
  }
  Person load() { return Repository<Person>{store}.load(Id<Person>::from("1")); }

  testing::MemoryStore store;
};

TEST_F(Evolution, ReadsEveryVersionAsTheNewest) {
  stored("person.baptised", 1, R"({"name":"Ada Byron"})");
  stored("person.named", 2, R"({"first":"Ada","last":"King"})");
  stored("person.named", 3, R"({"words":["Ada","King","Lovelace"]})");

  EXPECT_THAT(load().state().seen,
              ElementsAre("named|Ada|Byron", "named|Ada|King", "named|Ada|King|Lovelace"));
}

TEST_F(Evolution, ReadsEventsUnderTheirFormerNames) {
  stored("person.relocated", 1, R"({"to":"Rome"})");
  stored("person.resettled", 1, R"({"to":"Bern"})");
  stored("person.moved", 1, R"({"to":"Graz"})");

  EXPECT_THAT(load().state().seen, ElementsAre("moved|Rome", "moved|Bern", "moved|Graz"));
}

TEST_F(Evolution, NamesAnEventThatIsMissingFromTheSet) {
  stored("person.moved", 1, R"({"to":"Rome"})");
  stored("person.died", 4, "{}");

  EXPECT_THAT(message_of<UnknownEvent>([&] { load(); }),
              AllOf(HasSubstr("person.died v4"), HasSubstr("event 2"), HasSubstr("version 2"),
                    HasSubstr("person-1")));
}

TEST_F(Evolution, NamesAnUnknownVersion) {
  stored("person.named", 4, "{}");

  EXPECT_THAT(message_of<UnknownEvent>([&] { load(); }),
              AllOf(HasSubstr("person.named v4"), HasSubstr("event 1"), HasSubstr("person-1")));
}

TEST_F(Evolution, NamesAnOldPayloadThatCannotBeDecoded) {
  stored("person.named", 2, R"({"first":"Ada"})");

  EXPECT_THAT(message_of<CorruptEvent>([&] { load(); }),
              AllOf(HasSubstr("person.named v2"), HasSubstr("event 1"), HasSubstr("person-1"),
                    HasSubstr("last")));
}

TEST_F(Evolution, RecordsOnlyTheNewest) {
  UnitOfWork unit{store};
  unit.append(StreamId::parse("person-1"), ExpectedVersion::none(), Named{{"Ada"}});
  unit.commit();

  EXPECT_THAT(test::lines(store.read_all()),
              ElementsAre(R"(1 person-1@1 person.named {"words":["Ada"]})"));
}

TEST_F(Evolution, RecordsTheVersionBeforeWhileANewOneIsRolledOut) {
  Repository<Employee> employees{store};
  Employee ada{Id<Employee>::from("1")};
  ada.hire("acme", 40);
  employees.save(ada);

  std::vector<bool> published;
  for (const StoredEvent& event : store.read_all()) published.push_back(event.publishes());
  EXPECT_THAT(test::lines(store.read_all()),
              ElementsAre(R"(1 person-1@1 person.engaged {"by":"acme"})"));
  EXPECT_THAT(published, ElementsAre(true)) << "as the older program publishes it";
  EXPECT_EQ(ada.state().hours, 40);
  EXPECT_EQ(employees.load(Id<Employee>::from("1")).state().hours, 40);
  decide(store, Staff{Id<Firm>::from("acme")},
         [](Decision&, const Staff& staff) { EXPECT_EQ(staff.hours, 40); });
}

TEST_F(Evolution, RecordsNothingThatTheVersionBeforeCannotHold) {
  Repository<Employee> employees{store};
  Employee ada{Id<Employee>::from("1")};
  ada.hire("acme", 20);

  EXPECT_THAT(message_of<UsageError>([&] { employees.save(ada); }),
              AllOf(HasSubstr("person.hired v2 can't be stored: it is still recorded as v1"),
                    HasSubstr("remove `record_as`")));
  EXPECT_EQ(store.last_sequence(), GlobalSequence{0});
}

TEST(DecisionScenario, ExpectsEventsThatAreRecordedAsTheVersionBefore) {
  const Hired hired{Id<Firm>::from("acme"), 40};
  auto outcome = testing::given_nothing().when([&](Decision& decision) { decision.record(hired); });

  outcome.then(hired);
  EXPECT_EQ(outcome.recorded<Hired>().hours, 40);
  EXPECT_EQ(outcome.recorded().at(0).type, "person.engaged");
  EXPECT_EQ(outcome.recorded().at(0).stream.name(), "firm-acme");
}

TEST_F(Evolution, NamesAnOldPayloadThatCannotBeConverted) {
  stored("person.baptised", 1, R"({"name":"Plato"})");

  EXPECT_THAT(message_of<CorruptEvent>([&] { load(); }),
              AllOf(HasSubstr("person.baptised v1"), HasSubstr("upcast to v2"),
                    HasSubstr("only one name")));
}

TEST(EventDecoder, TellsKindsOfTwoStoresApart) {
  testing::MemoryStore one;
  testing::MemoryStore other;
  append(one, "person-1", {NewEvent{"person.relocated", 1, false, R"({"to":"Rome"})"}});
  append(other, "person-1", {NewEvent{"person.baptised", 1, false, R"({"name":"Ada Byron"})"}});
  EventDecoder<EventSet<Named, Moved>> decoder{Codec::json};
  PersonState person;

  for (testing::MemoryStore* const store : {&one, &other, &one}) {
    for (const StoredEvent& event : store->read_all()) {
      decoder.decode(event, [&](const auto& decoded) { person.apply(decoded); });
    }
  }

  EXPECT_THAT(person.seen, ElementsAre("moved|Rome", "named|Ada|Byron", "moved|Rome"));
}

}  // namespace
}  // namespace stela::evolution_test

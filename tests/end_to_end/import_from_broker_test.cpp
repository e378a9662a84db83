// What a restored backup lacks, brought back from the broker, on both engines.
#include "nats/jetstream.hpp"
#include "support/histories.hpp"
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/sqlite_care.hpp>
#include <stela/nats/detail/stream_reader.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>
#include <stela/outbox/care.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::test::import_from_broker_test {
namespace {

using namespace std::chrono_literals;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const NewEvent placed{"order.placed", 1, true, R"({"sku":"lamp"})"};
const NewEvent seen{"order.seen", 1, false, "{}"};

/// A shop of which a backup takes the database's place.
class Restored {
 public:
  explicit Restored(bool on_postgres, const OutboxOptions& options = {},
                    const Clock* clock = nullptr)
      : options_{options}, clock_{clock} {
    if (on_postgres) postgres_.emplace();
    open();
  }

  void open() {
    store_ = std::make_unique<Store>(
        postgres_ ? stela::open(postgres_->url())
                  : sqlite::open(path(), {.clock = clock_ ? clock_ : &system_clock()}));
    outbox_ = std::make_unique<Outbox>(*store_, options_);
  }
  void close() {
    outbox_.reset();
    store_.reset();
  }
  void back_up() {
    if (postgres_) return postgres_->dump("postgres", postgres_->folder() + "/shop.sql");
    sqlite::backup(*store_, dir_.file("backup.db"));
  }
  void restore() {
    close();
    if (postgres_) {
      postgres_->restore("postgres", postgres_->folder() + "/shop.sql");
    } else {
      for (const char* const part : {"", "-wal", "-shm"}) std::filesystem::remove(path() + part);
      std::filesystem::copy_file(dir_.file("backup.db"), path());
    }
    open();
  }

  void append(std::string_view stream, const std::vector<NewEvent>& events = {placed}) {
    test::append(*store_, stream, events);
  }
  /// Until nothing more is published. The reason why a partition stands.
  std::optional<StopReason> relay() {
    nats::PublisherOptions options = broker_options();
    options.ensure_stream = true;
    nats::Publisher publisher{options};
    Relay relay{*outbox_, publisher};
    std::optional<StopReason> stopped;
    EXPECT_TRUE(eventually([&] {
      relay.run_once();
      const OutboxStatus status = OutboxOperations{*store_}.status();
      bool waits = false;
      for (const PartitionStatus& each : status.partitions) {
        if (each.stopped) stopped = each.stopped;
        waits |= !each.stopped && each.pending + each.redeliveries > 0;
      }
      return !waits;
    }));
    return stopped;
  }
  void adopt_all() {
    OutboxOperations operations{*store_};
    for (const PartitionStatus& each : operations.status().partitions) {
      if (each.stopped) operations.adopt(each.id);
    }
  }

  ImportPlan plan() {
    nats::StreamReader broker{broker_options()};
    return OutboxOperations{*store_}.plan_import(broker);
  }
  AppliedImport import(const ImportPlan& plan) {
    nats::StreamReader broker{broker_options()};
    return OutboxOperations{*store_, {.who = "ann"}}.apply(plan, broker);
  }
  Compared compare() {
    nats::StreamReader broker{broker_options()};
    return OutboxOperations{*store_}.compare(broker, GlobalSequence{1}, Mode::dry_run);
  }
  /// What is wrong, as far as anybody can tell.
  std::vector<std::string> problems() {
    const auto check = outbox_check();
    const std::array<IntegrityCheck*, 1> checks{check.get()};
    std::vector<std::string> all = problems_of(*store_, {.checks = checks});
    const Compared compared = compare();
    if (compared.missing > 0) {
      all.push_back(std::to_string(compared.missing) + " are missing at the broker");
    }
    if (OutboxOperations{*store_}.reconcile(GlobalSequence{1}, Mode::dry_run).missing > 0) {
      all.emplace_back("some are missing in the outbox");
    }
    return all;
  }
  std::vector<std::string> history() { return full_lines(store_->read_all()); }
  /// "order-1@2", in the order of the stream.
  std::vector<std::string> at_broker(const std::string& stream = "SHOP") const {
    std::vector<std::string> all;
    for (const RawMessage& message : JetStream{nats.url()}.messages(stream)) {
      all.push_back(message.headers.at("ce-subject") + '@' +
                    message.headers.at("ce-streamversion"));
    }
    return all;
  }

  nats::PublisherOptions broker_options() const {
    return {.url = nats.url(),
            .prefix = "shop",
            .stream = "SHOP",
            .fence = options_.fence.value_or(Fence::stream)};
  }
  std::string path() const { return dir_.file("shop.db"); }
  Store& store() { return *store_; }

  NatsServer nats;

 private:
  const OutboxOptions options_;
  const Clock* clock_;
  TempDir dir_ = TempDir::in_memory();
  std::optional<PostgresServer> postgres_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Outbox> outbox_;
};

/// "order-1@2 fits", and why not.
std::vector<std::string> lines(const ImportPlan& plan) {
  std::vector<std::string> all;
  for (const StrayEvent& event : plan.events) {
    all.push_back(event.stream + '@' + std::to_string(event.version.value()) +
                  (event.fit == Fit::fits ? " fits" : ": " + event.why));
  }
  return all;
}

class ImportFromBroker : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(, ImportFromBroker, ::testing::Bool(), [](const auto& engine) {
  return std::string{engine.param ? "OnPostgres" : "OnSqlite"};
});

TEST_P(ImportFromBroker, BringsEventsBackAsTheyWere) {
  Restored shop{GetParam(), {.partition_count = 2}};
  shop.append("order-1");
  shop.append("order-2");
  shop.relay();
  shop.back_up();
  {
    const ContextScope scope{{.correlation_id = "checkout 7",
                              .causation_id = *Uuid::parse("01a1fde2-7840-7402-9112-131415161718"),
                              .actor = "Zoë",
                              .headers = {{"tenant", "50% \"off\""}}}};
    shop.append("order-café.3", {placed, {"order.paid", 2, true, R"({ "cents" : 100 })"}});
  }
  shop.append("order-1", {placed, placed});
  shop.append("order-2");
  shop.append("order-1");
  shop.relay();
  const auto before = shop.history();
  shop.restore();
  shop.append("order-9");
  EXPECT_EQ(shop.relay(), StopReason::store_went_back);
  shop.restore();

  const ImportPlan plan = shop.plan();
  EXPECT_THAT(lines(plan),
              ElementsAre("order-café.3@1 fits", "order-café.3@2 fits", "order-1@2 fits",
                          "order-1@3 fits", "order-2@2 fits", "order-1@4 fits"));
  const AppliedImport applied = shop.import(plan);
  EXPECT_EQ(applied.imported, 6);
  EXPECT_EQ(applied.streams, 3);
  EXPECT_EQ(applied.changed, 0);
  EXPECT_EQ(shop.history(), before);

  shop.relay();
  shop.adopt_all();
  shop.append("order-1");
  EXPECT_EQ(shop.relay(), std::nullopt);
  EXPECT_THAT(shop.problems(), IsEmpty());
  EXPECT_EQ(shop.compare().unknown, 0);
  EXPECT_EQ(shop.compare().found, 9);
  EXPECT_EQ(OutboxOperations{shop.store()}.status().partitions[0].published +
                OutboxOperations{shop.store()}.status().partitions[1].published,
            9);
  EXPECT_THAT(shop.plan().events, IsEmpty());
  const auto actions = OutboxOperations{shop.store()}.actions();
  ASSERT_FALSE(actions.empty());
  EXPECT_EQ(actions.back().who + ' ' + actions.back().what + ' ' + actions.back().detail,
            "ann import 6 messages, 3 to 8, from the broker");
}

TEST_P(ImportFromBroker, PublishesNothingTwiceWhereSequencesDiffer) {
  Restored shop{GetParam()};
  shop.append("order-1");
  shop.relay();
  shop.back_up();
  shop.append("order-1", {placed, placed});
  shop.append("order-2");
  shop.relay();
  shop.restore();
  shop.append("order-3", {placed, placed});
  EXPECT_EQ(shop.relay(), StopReason::store_went_back);

  EXPECT_EQ(shop.import(shop.plan()).imported, 3);
  EXPECT_THAT(shop.plan().events, IsEmpty());
  EXPECT_EQ(shop.import(shop.plan()).imported, 0);
  EXPECT_THAT(shop.problems(), IsEmpty());
  shop.adopt_all();
  shop.append("order-1");
  EXPECT_EQ(shop.relay(), std::nullopt);

  EXPECT_THAT(shop.at_broker(), ElementsAre("order-1@1", "order-1@2", "order-1@3", "order-2@1",
                                            "order-3@1", "order-3@2", "order-1@4"));
  EXPECT_THAT(shop.problems(), IsEmpty());
  EXPECT_EQ(shop.compare().unknown, 0);
  EXPECT_THAT(shop.plan().events, IsEmpty());
  const auto message = OutboxOperations{shop.store()}.show(GlobalSequence{4});
  ASSERT_TRUE(message);
  EXPECT_EQ(message->state, MessageState::published);
  EXPECT_EQ(message->broker_from, 2U);
}

TEST_P(ImportFromBroker, MayComeAfterTheAdoption) {
  Restored shop{GetParam()};
  shop.append("order-1");
  shop.relay();
  shop.back_up();
  shop.append("order-1");
  shop.relay();
  shop.restore();
  shop.append("order-3");
  EXPECT_EQ(shop.relay(), StopReason::store_went_back);
  shop.adopt_all();
  EXPECT_EQ(shop.relay(), std::nullopt);

  EXPECT_EQ(shop.import(shop.plan()).imported, 1);
  shop.append("order-1");
  EXPECT_EQ(shop.relay(), std::nullopt);

  EXPECT_THAT(shop.at_broker(), ElementsAre("order-1@1", "order-1@2", "order-3@1", "order-1@3"));
  EXPECT_THAT(shop.problems(), IsEmpty());
  EXPECT_EQ(shop.compare().unknown, 0);
}

TEST_P(ImportFromBroker, LeavesAloneWhatDoesNotFit) {
  Restored shop{GetParam()};
  shop.append("order-1");
  shop.append("order-2");
  shop.relay();
  shop.back_up();
  shop.append("order-1", {placed, seen, placed, placed});
  shop.append("order-2", {placed, placed});
  shop.append("order-3", {seen, seen, placed});
  shop.append("order-4");
  shop.relay();
  JetStream{shop.nats.url()}.publish("shop.x", "hello");
  shop.restore();
  shop.append("order-2");
  const std::string there = shop.history().back();

  const ImportPlan plan = shop.plan();

  EXPECT_EQ(plan.fitting, 2);
  EXPECT_EQ(plan.foreign, 1);
  ASSERT_THAT(plan.events, SizeIs(8));
  EXPECT_THAT(
      lines(plan),
      ElementsAre(
          "order-1@2 fits",
          "order-1@4: order-1 is at version 2, and the event is version 4: version 3 wasn't "
          "published",
          "order-1@5: order-1@4 before it doesn't fit",
          HasSubstr("order-2@2: the store has another event as order-2@2: "),
          "order-2@3: order-2@2 before it doesn't fit",
          "order-3@3: order-3 is at version 0, and the event is version 3: versions 1 to 2 weren't "
          "published",
          "order-4@1 fits", HasSubstr("@0: the message isn't one of Stela's: ")));
  EXPECT_THAT(there, HasSubstr(plan.events[3].why.substr(plan.events[3].why.size() - 36)));
  EXPECT_EQ(shop.import(plan).imported, 2);
  EXPECT_EQ(shop.plan().fitting, 0);
  shop.relay();
  shop.adopt_all();
  EXPECT_EQ(shop.relay(), std::nullopt);
  EXPECT_THAT(shop.problems(), IsEmpty());
  EXPECT_EQ(shop.compare().unknown, 5);
}

TEST_P(ImportFromBroker, NamesWhatTheBrokerNoLongerHas) {
  Restored shop{GetParam()};
  shop.back_up();
  shop.append("order-1", {placed, placed});
  shop.relay();
  JetStream{shop.nats.url()}.erase("SHOP", 1);
  shop.restore();

  EXPECT_THAT(lines(shop.plan()),
              ElementsAre("order-1@2: order-1 is at version 0, and the event is version 2: version "
                          "1 isn't at the broker"));
}

TEST_P(ImportFromBroker, LeavesAloneWhatHasChangedSinceThePlan) {
  Restored shop{GetParam()};
  shop.back_up();
  for (int i = 0; i < 3; ++i) {
    for (const char* const stream : {"order-1", "order-2", "order-3"}) shop.append(stream);
  }
  shop.relay();
  shop.restore();
  const ImportPlan plan = shop.plan();
  ASSERT_EQ(plan.fitting, 9);
  shop.append("order-2");
  JetStream{shop.nats.url()}.erase("SHOP", 6);

  const AppliedImport applied = shop.import(plan);

  EXPECT_EQ(applied.imported, 4);
  EXPECT_EQ(applied.changed, 5);
  std::vector<std::string> changed;
  for (const StrayEvent& event : applied.examples) {
    changed.push_back(event.stream + '@' + std::to_string(event.version.value()) + ' ' + event.why);
  }
  EXPECT_THAT(changed, ElementsAre("order-3@2 the broker doesn't have it any more",
                                   "order-3@3 an event of its stream before it wasn't imported",
                                   "order-2@1 version 1 of 'order-2' follows version 1",
                                   "order-2@2 an event of its stream before it wasn't imported",
                                   "order-2@3 an event of its stream before it wasn't imported"));
  shop.relay();
  shop.adopt_all();
  EXPECT_EQ(shop.relay(), std::nullopt);
  EXPECT_THAT(shop.problems(), IsEmpty());
}

TEST_P(ImportFromBroker, ContinuesAfterItWasKilled) {
  Restored shop{GetParam()};
  shop.back_up();
  for (int i = 0; i < 12; ++i) {
    shop.append("order-" + std::to_string(i % 5), std::vector<NewEvent>(100, placed));
  }
  const auto before = shop.history();
  shop.close();
  // The client of the broker outlives no fork.
  Process relay{[&] {
    shop.open();
    shop.relay();
  }};
  ASSERT_EQ(relay.wait(), 0);
  shop.restore();
  shop.close();

  Process importer{[&] {
    shop.open();
    nats::StreamReader broker{shop.broker_options()};
    OutboxOperations operations{shop.store()};
    const ImportPlan plan = operations.plan_import(broker);
    operations.on_progress([](const Progress& progress) {
      if (progress.stage == "import") raise(SIGKILL);
    });
    operations.apply(plan, broker);
  }};
  EXPECT_EQ(importer.wait(), 128 + SIGKILL);

  shop.open();
  EXPECT_THAT(shop.history(), SizeIs(500));
  EXPECT_THAT(shop.problems(), IsEmpty());
  EXPECT_EQ(shop.import(shop.plan()).imported, 700);
  EXPECT_EQ(shop.history(), before);
  EXPECT_EQ(shop.relay(), std::nullopt) << "the broker has what the store has";
  EXPECT_THAT(shop.problems(), IsEmpty());
}

class ImportAtEveryFence : public ::testing::TestWithParam<Fence> {};

INSTANTIATE_TEST_SUITE_P(, ImportAtEveryFence,
                         ::testing::Values(Fence::stream, Fence::subject, Fence::none),
                         [](const auto& fence) { return std::string{to_string(fence.param)}; });

TEST_P(ImportAtEveryFence, PublishesNothingTwice) {
  Restored shop{false, {.partition_count = 3, .fence = GetParam()}};
  shop.back_up();
  for (int i = 0; i < 30; ++i) shop.append("order-" + std::to_string(i % 10));
  shop.relay();
  shop.restore();
  shop.append("parcel-1");

  EXPECT_EQ(shop.import(shop.plan()).imported, 30);
  shop.relay();
  shop.adopt_all();
  EXPECT_EQ(shop.relay(), std::nullopt);

  EXPECT_THAT(shop.problems(), IsEmpty());
  EXPECT_EQ(shop.compare().found, 31);
  EXPECT_EQ(shop.compare().unknown, 0);
}

TEST(Imports, TakeNoEventAfterAYoungerOne) {
  testing::ManualClock clock;
  Restored shop{false, {}, &clock};
  shop.append("order-1");
  shop.relay();
  shop.back_up();
  shop.append("order-1", {seen, placed});
  shop.relay();
  shop.restore();
  clock.advance(1min);
  // The version that the event follows, but another history.
  shop.append("order-1", {seen});

  EXPECT_THAT(lines(shop.plan()), ElementsAre("order-1@3: order-1@2 was recorded after it"));
}

TEST(Imports, AreRememberedForEver) {
  testing::ManualClock clock;
  Restored shop{false, {}, &clock};
  shop.back_up();
  shop.append("order-1", {placed, placed});
  shop.relay();
  shop.restore();
  shop.append("order-2");
  shop.import(shop.plan());
  shop.relay();
  shop.adopt_all();
  shop.relay();

  clock.advance(24h);
  OutboxOperations{shop.store()}.purge(1h);

  EXPECT_EQ(shop.compare().found, 3);
  EXPECT_EQ(shop.compare().unknown, 0);
  EXPECT_THAT(shop.problems(), IsEmpty());

  JetStream broker{shop.nats.url()};
  broker.update_stream("SHOP", [](auto& config) { config.MaxAge = 3'600'000'000'000; });
  broker.erase("SHOP", 1);
  broker.erase("SHOP", 2);
  EXPECT_EQ(shop.compare().dropped, 2);
  EXPECT_THAT(shop.problems(), IsEmpty());
}

TEST(Imports, RefuseWhereSomebodyElseTakesPartInAppends) {
  Restored shop{false};
  shop.back_up();
  shop.append("order-1");
  shop.relay();
  shop.restore();
  const ImportPlan plan = shop.plan();
  RawSqlite{shop.path()}.run(
      "INSERT INTO stela_participants (name, detail, registered_at, checksum) "
      "VALUES ('sales', '', 0, 0)");

  EXPECT_THAT(message_of<UsageError>([&] { shop.import(plan); }), HasSubstr("'sales'"));
  EXPECT_THAT(shop.history(), IsEmpty());
}

TEST(Imports, LeaveAloneWhatDeclaresTags) {
  Restored shop{false};
  const std::vector<Tag> tags{Tag::parse("customer-7")};
  const std::vector<TagDeclaration> declared{{"customer"}};
  const NewEvent tagged{.type = "order.placed",
                        .publishes = true,
                        .payload = "{}",
                        .tags = tags,
                        .declared = declared};
  shop.append("order-1", {tagged});
  shop.relay();
  shop.back_up();
  shop.append("order-2", {tagged});
  shop.relay();
  shop.restore();

  EXPECT_THAT(lines(shop.plan()),
              ElementsAre("order-2@1: its type declares tags, and a message has none"));
}

}  // namespace
}  // namespace stela::test::import_from_broker_test

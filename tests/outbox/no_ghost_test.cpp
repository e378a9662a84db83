// Nothing leaves that a power cut could still take out of the store: at every message that is sent,
// the database is opened as it would be found after one.
#include "outbox/shop.hpp"
#include "support/fault_vfs.hpp"
#include "support/print_enums.hpp"
#include "support/synced_log.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace stela::no_ghost_test {
namespace {

using namespace std::chrono_literals;
using test::FileOperation;
using ::testing::HasSubstr;

/// A publisher that looks at each message before it goes on its way.
class Watched final : public Publisher {
 public:
  Watched(Publisher& publisher, std::function<void(const OutgoingMessage&)> look)
      : publisher_{publisher}, look_{std::move(look)} {}

  using Publisher::can;
  bool can(Fence fence) const noexcept override { return publisher_.can(fence); }
  void connect(std::uint64_t session, AnswerSink& sink) override {
    publisher_.connect(session, sink);
  }
  void disconnect() noexcept override { publisher_.disconnect(); }
  void publish(const OutgoingMessage& message) override {
    look_(message);
    publisher_.publish(message);
  }
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override {
    publisher_.read_back(request, partition, from);
  }
  void probe(std::uint64_t request) override { publisher_.probe(request); }
  void flush() override { publisher_.flush(); }

 private:
  Publisher& publisher_;
  std::function<void(const OutgoingMessage&)> look_;
};

struct SentMessages : ::testing::TestWithParam<sqlite::Durability> {
  SentMessages()
      : store{sqlite::open(path, {.durability = GetParam(),
                                  // So that the log begins anew now and then.
                                  .checkpoint_pages = 20,
                                  .clock = &clock,
                                  .vfs = vfs.name()})} {}

  void append(int events) {
    for (int i = 0; i < events; ++i) {
      test::append(store, "order-" + std::to_string(i % 3), {NewEvent{"placed", 1, true, "{}"}});
    }
  }

  /// The last event that is there after a power cut at this moment.
  GlobalSequence last_after_power_cut() {
    const std::string copy = dir.file("found.db");
    disk.copy_what_is_left(path, copy);
    auto found = sqlite::open(copy);
    return found.last_sequence();
  }

  test::TempDir dir = test::TempDir::in_memory();
  std::string path = dir.file("shop.db");
  testing::ManualClock clock;
  test::SyncedLog disk;
  test::FaultVfs vfs{disk};
  Store store;
  Outbox outbox{store};
  test::FileBroker broker{dir.file("broker.db"), Fence::stream};
};

INSTANTIATE_TEST_SUITE_P(Durabilities, SentMessages,
                         ::testing::Values(sqlite::Durability::full, sqlite::Durability::relaxed),
                         ::testing::PrintToStringParamName());

TEST_P(SentMessages, SurviveAPowerCut) {
  int sent = 0;
  Watched publisher{broker, [&](const OutgoingMessage& message) {
                      ++sent;
                      EXPECT_GE(last_after_power_cut(), message.event.sequence);
                    }};
  Relay relay{outbox, publisher, {.batch_size = 4, .window = 8}};
  for (const int events : {1, 7, 20, 3}) {
    append(events);
    clock.advance(1s);
    relay.run_once();
  }

  EXPECT_EQ(sent, 31);
}

TEST_P(SentMessages, DependOnASyncUnderRelaxed) {
  append(1);
  const bool is_durable = last_after_power_cut() == GlobalSequence{1};
  EXPECT_EQ(is_durable, GetParam() == sqlite::Durability::full);
}

TEST(FailedSync, StopsSending) {
  const test::TempDir dir = test::TempDir::in_memory();
  testing::ManualClock clock;
  test::FailNth disk;
  const test::FaultVfs vfs{disk};
  auto store =
      sqlite::open(dir.file("shop.db"),
                   {.durability = sqlite::Durability::relaxed, .clock = &clock, .vfs = vfs.name()});
  Outbox outbox{store};
  test::FileBroker broker{dir.file("broker.db"), Fence::stream};
  Relay relay{outbox, broker};
  const std::vector<NewEvent> placed(3, NewEvent{"placed", 1, true, "{}"});
  test::append(store, "order-1", placed);

  disk.arm({.operations = {FileOperation::sync}});
  EXPECT_EQ(relay.run_once().published, 0);
  EXPECT_TRUE(disk.has_fired());
  disk.disarm();
  // The disk says that all is well again, and what it lost nobody knows.
  for (int i = 0; i < 3; ++i) {
    clock.advance(2s);
    EXPECT_EQ(relay.run_once().published, 0);
  }

  EXPECT_EQ(broker.log(PartitionId{0}), "");
  try {
    test::append(store, "order-1", placed);
    FAIL() << "appended to a log that failed";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("reopen the store"));
  }
}

}  // namespace
}  // namespace stela::no_ghost_test

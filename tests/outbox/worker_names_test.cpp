// Workers of one name: at most one of them works, wherever they run.
#include "outbox/shop.hpp"
#include "support/process.hpp"

#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <functional>
#include <list>
#include <memory>
#include <stdexcept>
#include <string>

namespace stela::worker_names_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using test::Shop;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class WorkerNames : public ::testing::Test {
 protected:
  /// With a session of its own.
  std::unique_ptr<Relay> relay() {
    brokers.emplace_back(shop.dir.file("broker.db"), Fence::stream);
    return std::make_unique<Relay>(shop.outbox, brokers.back(), RelayOptions{.worker = "w1"});
  }
  /// What comes of its work: why it is refused, or nothing.
  static std::string refusal_of(Relay& relay) {
    try {
      relay.run_once();
    } catch (const UsageError& e) {
      return e.what();
    }
    return {};
  }

  Shop shop;
  std::list<test::FileBroker> brokers;
};

TEST_F(WorkerNames, AreRefusedForASecondRelayOfTheSameProcess) {
  const auto first = relay();
  first->run_once();
  auto second = relay();
  EXPECT_THAT(refusal_of(*second), AllOf(HasSubstr("a worker named 'w1' is alive (host "),
                                         HasSubstr(std::to_string(getpid()))));

  second.reset();
  EXPECT_THAT(shop.operations.status().workers, SizeIs(1)) << "the first one has left";
  shop.append("order-1");
  shop.clock.advance(1s);
  EXPECT_EQ(first->run_once().published, 1);
}

TEST_F(WorkerNames, AreFreeAsSoonAsTheirRelayIsGone) {
  auto first = relay();
  first->run_once();
  // It can't say that it leaves.
  auto other = test::RawSqlite{sqlite::path(shop.store)};
  other.run("BEGIN IMMEDIATE");
  first.reset();
  other.run("COMMIT");
  ASSERT_THAT(shop.operations.status().workers, SizeIs(1));
  EXPECT_EQ(shop.operations.status().workers.front().process, WorkerProcess::ended);
  EXPECT_FALSE(shop.operations.status().workers.front().is_alive);

  EXPECT_EQ(refusal_of(*relay()), "");
}

TEST_F(WorkerNames, AreLostByARelayThatIsSilentForTooLong) {
  const auto silent = relay();
  silent->run_once();
  shop.clock.advance(RelayOptions{}.heartbeat_ttl);
  const auto other = relay();
  EXPECT_EQ(refusal_of(*other), "");

  EXPECT_THAT(refusal_of(*silent), HasSubstr("a worker named 'w1' is alive"));
  shop.append("order-1");
  shop.clock.advance(RelayOptions{}.lease_ttl);
  EXPECT_EQ(other->run_once().published, 1);
}

TEST_F(WorkerNames, AreLookedAtAgainAfterTheStoreWasBusy) {
  const auto first = relay();
  first->run_once();
  shop.append("order-1");
  const auto second = relay();
  {
    auto other = test::RawSqlite{sqlite::path(shop.store)};
    other.run("BEGIN IMMEDIATE");
    EXPECT_EQ(refusal_of(*second), "") << "it isn't known yet";
    EXPECT_EQ(second->run_once().owned_count, 0);
  }

  shop.clock.advance(RelayOptions{}.lease_renew / 8);
  EXPECT_THAT(refusal_of(*second), HasSubstr("a worker named 'w1' is alive"));
}

/// A process in a container of its own: the first one there, as those of its siblings are.
class Container {
 public:
  explicit Container(const std::function<void()>& work)
      : outside_{[work] {
          const int flags = geteuid() == 0 ? CLONE_NEWPID : CLONE_NEWUSER | CLONE_NEWPID;
          if (unshare(flags) != 0) _exit(no_container);
          const pid_t inside = fork();
          if (inside == 0) run(work);
          int status = 0;
          waitpid(inside, &status, 0);
          _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
        }} {}

  static constexpr int no_container = 77;
  int wait() { return outside_.wait(); }

 private:
  [[noreturn]] static void run(const std::function<void()>& work) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      work();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "a container failed: %s\n", e.what());
      _exit(1);
    }
    // As if it had been killed: nothing is destroyed.
    _exit(0);
  }

  test::Process outside_;
};

/// A worker in a container, until it is told to die. "joined", or why it was refused.
Container worker_in_container(const test::TempDir& dir, const test::Pipe& said,
                              const std::atomic<bool>& may_die) {
  return Container{[&] {
    auto store = sqlite::open(dir.file("shop.db"));
    Outbox outbox{store};
    test::FileBroker broker{dir.file("broker.db"), Fence::stream};
    Relay relay{outbox, broker, {.worker = "w1"}};
    try {
      relay.run_once();
      said.write("joined");
    } catch (const UsageError& e) {
      said.write(e.what());
    }
    test::eventually([&] { return may_die.load(); });
  }};
}

TEST(WorkerNamesOfContainers, AreRefusedOnlyWhileTheirWorkerLives) {
  const test::TempDir dir;
  const test::Shared<std::atomic<bool>> now;
  const test::Shared<std::atomic<bool>> later;
  *now = true;
  const test::Pipe first_said;
  const test::Pipe said;
  Container first = worker_in_container(dir, first_said, *later);
  std::string first_words;
  ASSERT_TRUE(
      test::eventually([&] { return !(first_words += first_said.read_available()).empty(); }));
  ASSERT_EQ(first_words, "joined");

  EXPECT_EQ(worker_in_container(dir, said, *now).wait(), 0);
  EXPECT_THAT(said.read_available(), HasSubstr("a worker named 'w1' is alive"));

  *later = true;
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(worker_in_container(dir, said, *now).wait(), 0);
  EXPECT_EQ(said.read_available(), "joined");
}

}  // namespace
}  // namespace stela::worker_names_test

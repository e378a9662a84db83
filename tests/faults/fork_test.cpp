// A forked child has a copy of its parent's stores, and may use none of them.
#include "faults/evidence.hpp"
#include "sqlite/core.hpp"
#include "support/bystander.hpp"
#include "support/histories.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/async.hpp>
#include <stela/eventstore/operations.hpp>
#include <stela/eventstore/sqlite_care.hpp>
#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace stela::fork_test {
namespace {

using test::append;
using ::testing::HasSubstr;

struct Hold {
  std::atomic<bool> held{false};
  std::atomic<bool> release{false};

  void until_released() {
    held = true;
    test::eventually([&] { return release.load(); });
  }
};

/// Forks a helper that does what it is told, and outlives its parent.
void fork_helper(const std::function<void()>& work) {
  if (fork() != 0) return;
  work();
  _exit(0);
}

TEST(ForkOfAWriter, DoesntHoldTheLockOfItsDeadParent) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Shared<Hold> hold;
  test::Process writer{[&] {
    auto other = sqlite::open(path);
    other.transact([&](Transaction&) {
      fork_helper([&] { hold->until_released(); });
      test::eventually([&] { return hold->release.load(); });
    });
  }};
  ASSERT_TRUE(test::eventually([&] { return hold->held.load(); }));
  writer.kill();

  auto store = sqlite::open(path, {.busy_timeout = std::chrono::seconds{5}});
  EXPECT_EQ(append(store, "order-1", "{}").last, GlobalSequence{1});
  hold->release = true;
}

/// What comes of `use` in a forked child: "refused", or what else.
template <class Use>
std::string outcome_of(Use&& use) {
  try {
    use();
    return "done";
  } catch (const UsageError& e) {
    return std::string_view{e.what()}.find("open it after the fork") != std::string_view::npos
               ? "refused"
               : e.what();
  } catch (const std::exception& e) {
    return e.what();
  }
}

/// The uses of a store that a child isn't refused, with what comes of them.
std::string allowed_uses(Store& store, const std::string& target) {
  const StreamId order = StreamId::parse("order-1");
  std::string allowed;
  const auto attempt = [&](const char* name, auto&& use) {
    const std::string outcome = outcome_of(use);
    if (outcome != "refused") allowed += std::string{name} + ": " + outcome + '\n';
  };
  attempt("append", [&] { append(store, "order-1", "{}"); });
  attempt("transact", [&] { store.transact([](Transaction&) {}); });
  attempt("read_stream", [&] { (void)store.read_stream(order).begin(); });
  attempt("read_all", [&] { (void)store.read_all().begin(); });
  attempt("last_sequence", [&] { (void)store.last_sequence(); });
  attempt("find_snapshot",
          [&] { (void)store.find_snapshot(order, StreamVersion::max(), GlobalSequence::max()); });
  attempt("drop_snapshot", [&] { store.drop_snapshot(order); });
  attempt("checkpoint", [&] { (void)sqlite::checkpoint(store); });
  attempt("backup", [&] { (void)sqlite::backup(store, target); });
  attempt("verify", [&] { (void)StoreOperations{store}.verify([](const Problem&) {}); });
  attempt("sync_log", [&] { store.database().sync(); });
  attempt("connect", [&] { (void)sqlite::core_of(store).connect(); });
  return allowed;
}

TEST(ForkOfAWriter, CannotUseTheStoreOfItsParent) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Pipe said;
  test::Process writer{[&] {
    auto store = test::open_store(path);
    append(*store, "order-1", "{}");
    test::Process child{[&] {
      said.write(allowed_uses(*store, dir.file("copy.db")));
      store.reset();
    }};
    if (child.wait() != 0) throw std::runtime_error{"the child failed"};
    append(*store, "order-1", "{}");
  }};
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(said.read_available(), "");
  auto after = sqlite::open(path);
  EXPECT_EQ(after.last_sequence(), GlobalSequence{2});
}

TEST(ForkOfAWriter, CannotUseItsParentsAsynchronousCalls) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Pipe said;
  test::Process writer{[&] {
    auto store = test::open_store(path);
    std::vector<AsyncStore::Task> tasks;
    auto async = std::make_unique<AsyncStore>(
        *store, [&](AsyncStore::Task task) { tasks.push_back(std::move(task)); });
    const AppendRequest nothing{.append_id = "once"};
    int answered = 0;
    const auto count = [&](const std::exception_ptr&, const AppendResult&) { ++answered; };
    async->append(OwnedAppend{nothing}, count);
    test::Process child{[&] {
      const auto note = [&](const std::exception_ptr& error, const AppendResult&) {
        said.write(outcome_of([&] { std::rethrow_exception(error); }));
      };
      async->append(OwnedAppend{nothing}, note);
      async->run([] {}, [&](const std::exception_ptr& error) { note(error, {}); });
      async.reset();
      store.reset();
      // What waits in its parent isn't answered here.
      if (answered != 0) said.write("answered");
    }};
    if (child.wait() != 0) throw std::runtime_error{"the child failed"};
    tasks.front()();
    if (answered != 1) throw std::runtime_error{"the parent isn't answered"};
  }};
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(said.read_available(), "refusedrefused");
}

TEST(ForkOfAWriter, ReleasesItsParentsParticipants) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Pipe said;
  test::Process writer{[&] {
    auto store = test::open_store(path);
    test::Bystander bystander;
    store->attach(bystander);
    test::Process child{[&] {
      // As an outbox does, and an inline projector, when they are destroyed.
      said.write(outcome_of([&] { store->detach(bystander); }));
      store.reset();
    }};
    if (child.wait() != 0) throw std::runtime_error{"the child failed"};
    append(*store, "order-1", "{}");
  }};
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(said.read_available(), "done");
}

TEST(ForkOfAWriter, IsRefusedAStoreThatItsParentOnlyReads) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Pipe said;
  test::Process reader{[&] {
    (void)sqlite::open(path);
    auto store = sqlite::open(path, {.read_only = true});
    test::Process child{[&] {
      if (outcome_of([&] { (void)store.last_sequence(); }) != "refused")
        said.write("last_sequence");
      if (outcome_of([&] { (void)sqlite::core_of(store).connect(); }) != "refused")
        said.write("connect");
    }};
    child.wait();
    (void)store.last_sequence();
  }};
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(said.read_available(), "");
}

TEST(ForkOfAWriter, CannotOpenTheFileWhileItHasACopyOfItsParentsStore) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Pipe said;
  test::Process writer{[&] {
    auto store = test::open_store(path);
    test::Process child{[&] {
      said.write(outcome_of([&] { (void)sqlite::open(path); }) + ' ');
      said.write(outcome_of([&] { (void)sqlite::open(path, {.read_only = true}); }) + ' ');
      store.reset();
      said.write(outcome_of([&] {
        auto own = sqlite::open(path);
        append(own, "order-1", "{}");
      }));
    }};
    child.wait();
  }};
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(said.read_available(), "refused refused done");
  EXPECT_EQ(test::flaw_of(path), "");
  EXPECT_EQ(sqlite::open(path).last_sequence(), GlobalSequence{1});
}

/// Another program reads the database, and tidies its log away if nobody has the file locked.
void read_elsewhere(const std::string& path) {
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  sqlite3_exec(database, "SELECT count(*) FROM events", nullptr, nullptr, nullptr);
  sqlite3_close(database);
}

/// A store of this process's own: beside its parent's if it may, else instead of that.
std::unique_ptr<Store> open_own(const std::string& path, std::unique_ptr<Store>& parents) {
  try {
    return test::open_store(path);
  } catch (const UsageError&) {
    parents.reset();
    return test::open_store(path);
  }
}

TEST(ForkOfAWriter, LosesNothingThatItWritesAfterItsParentHasClosedTheFile) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Shared<Hold> parent;
  const test::Shared<Hold> child;
  test::Process writer{[&] {
    auto store = test::open_store(path);
    append(*store, "order-1", "{}");
    test::Process forked{[&] {
      const auto own = open_own(path, store);
      append(*own, "order-1", "{}");
      child->until_released();
      append(*own, "order-1", "{}");
      raise(SIGKILL);
    }};
    test::eventually([&] { return child->held.load(); });
    store.reset();
    parent->until_released();
    forked.wait();
  }};
  ASSERT_TRUE(test::eventually([&] { return parent->held.load(); }));
  read_elsewhere(path);
  parent->release = child->release = true;
  EXPECT_EQ(writer.wait(), 0);

  EXPECT_EQ(test::flaw_of(path), "");
  EXPECT_EQ(sqlite::open(path).last_sequence(), GlobalSequence{3});
}

TEST(ForkOfAWriter, IsRefusedTheFileOnceItHasLeftACopyInATransaction) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Shared<Hold> hold;
  const test::Pipe said;
  test::Process writer{[&] {
    auto store = test::open_store(path);
    std::jthread leader{
        [&, &shared = *store] { shared.transact([&](Transaction&) { hold->until_released(); }); }};
    test::eventually([&] { return hold->held.load(); });
    test::Process child{[&] {
      store.reset();
      said.write(outcome_of([&] { (void)sqlite::open(path); }));
    }};
    child.wait();
    hold->release = true;
  }};
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(said.read_available(), "refused");
}

TEST(ForkOfAWriter, DoesntWaitForAThreadThatItHasNoCopyOf) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Shared<Hold> hold;
  const test::Pipe said;
  test::Process writer{[&] {
    auto store = sqlite::open(path);
    std::jthread leader{[&] {
      store.transact([&](Transaction& transaction) {
        append(transaction, "order-1", "{}");
        hold->until_released();
      });
    }};
    test::eventually([&] { return hold->held.load(); });
    test::Process child{[&] { said.write(outcome_of([&] { append(store, "order-1", "{}"); })); }};
    test::eventually([&] { return !child.is_running(); }, std::chrono::seconds{10});
    child.kill();
    hold->release = true;
  }};
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(said.read_available(), "refused");
  EXPECT_EQ(sqlite::open(path).last_sequence(), GlobalSequence{1});
}

TEST(ForkOfAWriter, DoesntCommitTheTransactionThatItWasForkedIn) {
  const test::TempDir dir;
  const std::string path = dir.file("shop.db");
  const test::Shared<Hold> hold;
  const test::Pipe said;
  test::Process writer{[&] {
    auto store = sqlite::open(path);
    pid_t child = -1;
    const std::string outcome = outcome_of([&] {
      store.transact([&](Transaction& transaction) {
        append(transaction, "order-1", "{}");
        child = fork();
        if (child != 0) return hold->until_released();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        said.write(outcome_of([&] { append(transaction, "order-1", "{}"); }) + ' ');
      });
    });
    if (child != 0) {
      if (outcome != "done") throw std::runtime_error{outcome};
      return;
    }
    said.write(outcome);
    hold->release = true;
    _exit(0);
  }};
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(said.read_available(), "refused refused");
  EXPECT_EQ(test::flaw_of(path), "");
  EXPECT_EQ(sqlite::open(path).last_sequence(), GlobalSequence{1});
}

/// Whether this process has a file open whose name ends like that.
bool has_open(std::string_view end) {
  for (int file = 0; file < 64; ++file) {
    std::array<char, 512> name{};
    const ssize_t size =
        readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), name.data(), name.size());
    if (size > 0 && std::string_view{name.data(), static_cast<std::size_t>(size)}.ends_with(end)) {
      return true;
    }
  }
  return false;
}

TEST(ForkOfAWriter, HasNoCopyOfALockFileThatIsJustBeingOpened) {
  const test::TempDir dir = test::TempDir::in_memory();
  const std::string path = dir.file("shop.db");
  test::Process parent{[&] {
    const std::jthread opener{[&](const std::stop_token& stop) {
      while (!stop.stop_requested()) const sqlite::LockFile file{path};
    }};
    int copies = 0;
    for (int i = 0; i < 300; ++i) {
      copies += test::Process{[] { _exit(has_open("shop.db-lock") ? 17 : 0); }}.wait();
    }
    if (copies > 0) throw std::runtime_error{std::to_string(copies / 17) + " copies"};
  }};
  EXPECT_EQ(parent.wait(), 0);
}

}  // namespace
}  // namespace stela::fork_test

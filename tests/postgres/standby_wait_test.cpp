// A synchronous standby that is missing, which all commits wait for.
#include "database/database.hpp"
#include "support/histories.hpp"
#include "support/messages.hpp"
#include "support/pooler.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/thread_each.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stela::postgres::standby_wait_test {
namespace {

using namespace std::chrono_literals;

using test::append;
using test::eventually;
using test::message_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Steady = std::chrono::steady_clock;

class MissingStandby : public ::testing::Test {
 protected:
  void SetUp() override { append(store_, "order-1"); }

  void miss_standby() { name_standbys("db2"); }
  void name_standbys(const std::string& names) {
    server_.ask("ALTER SYSTEM SET synchronous_standby_names = '" + names + "'");
    server_.ask("SELECT pg_reload_conf()");
    ASSERT_TRUE(eventually([&] {
      return server_.ask("SELECT current_setting('synchronous_standby_names')") == names;
    }));
    // The checkpointer tells the other sessions, and nothing shows when it has: some looks later.
    int looks = 0;
    eventually([&] { return ++looks > 20; });
  }
  /// Visible, and confirmed by nobody.
  void append_in_doubt() {
    EXPECT_THAT(message_of<CommitInDoubt>([&] { append(store_, "order-1"); }), names_standby());
  }
  static ::testing::Matcher<std::string> names_standby() {
    return AllOf(HasSubstr("synchronous_standby_names = 'db2'"),
                 HasSubstr("no standby is connected"));
  }
  bool has_no_session_that_waits() {
    return eventually([&] {
      return server_.ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") ==
             "0";
    });
  }

  test::PostgresServer server_;
  Store store_ = open(server_.url(), {.commit_timeout = 300ms});
};

TEST_F(MissingStandby, IsNamedByAnAppendThatItLeavesInDoubt) {
  miss_standby();
  const auto begun = Steady::now();
  append_in_doubt();
  EXPECT_LT(Steady::now() - begun, 10s);
  // Otherwise each attempt would take the server a connection.
  EXPECT_TRUE(has_no_session_that_waits());
}

TEST_F(MissingStandby, HoldsUpManyAsynchronousAppendsNoLongerThanOne) {
  constexpr int count = 200;
  miss_standby();
  const auto begun = Steady::now();
  test::ThreadEach threads;
  std::mutex mutex;
  std::vector<std::string> said;
  {
    AsyncStore async{store_, threads.post()};
    std::vector<std::promise<void>> answered(count);
    for (std::promise<void>& one : answered) {
      const StreamId order = StreamId::parse("order-1");
      const NewEvent event{"noted", 1, false, "{}"};
      const StreamAppend append{order, ExpectedVersion::any(), {&event, 1}};
      async.append(OwnedAppend{{.streams = {&append, 1}}},
                   [&](const std::exception_ptr& error, const AppendResult&) {
                     const std::lock_guard lock{mutex};
                     said.push_back(message_of<CommitInDoubt>([&] {
                       if (error) std::rethrow_exception(error);
                     }));
                     one.set_value();
                   });
    }
    for (std::promise<void>& one : answered) one.get_future().wait();
  }

  EXPECT_LT(Steady::now() - begun, 10s);
  EXPECT_THAT(said, AllOf(SizeIs(count), Each(names_standby())));
  EXPECT_TRUE(has_no_session_that_waits());
}

TEST_F(MissingStandby, IsNamedByReadsThatWouldPromiseTooMuch) {
  Store reader = open(server_.url(), {.commit_timeout = 300ms});
  miss_standby();
  append_in_doubt();
  const auto begun = Steady::now();
  EXPECT_THAT(message_of<StoreBusy>([&] { reader.last_sequence(); }), names_standby());
  EXPECT_THAT(message_of<StoreBusy>([&] {
                for (const StoredEvent& event : reader.read_all()) (void)event;
              }),
              names_standby());
  EXPECT_THAT(message_of<StoreBusy>([&] { reader.database().read([](database::Connection&) {}); }),
              names_standby());
  EXPECT_LT(Steady::now() - begun, 15s);
}

TEST_F(MissingStandby, IsNamedByALookForAnAppendThatIsInDoubt) {
  Store reader = open(server_.url(), {.commit_timeout = 300ms});
  miss_standby();
  const auto append_as = [&](const char* id, std::vector<NewEvent> events) {
    EXPECT_THROW(append(store_, "order-1", events, id), CommitInDoubt);
  };
  append_as("some", {{"noted", 1, false, "{}"}});
  append_as("none", {});
  for (const char* const id : {"some", "none"}) {
    EXPECT_THAT(message_of<StoreBusy>([&] { (void)reader.find_append(id); }), names_standby());
    EXPECT_THAT(message_of<StoreBusy>([&] {
                  reader.transact([&](Transaction& transaction) {
                    EXPECT_TRUE(transaction.find_append(id)) << id;
                  });
                }),
                names_standby());
  }
}

TEST_F(MissingStandby, HoldsUpManyReadersNoLongerThanOne) {
  Store reader = open(server_.url(), {.commit_timeout = 500ms});
  miss_standby();
  append_in_doubt();
  const auto begun = Steady::now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 12; ++i) {
      threads.emplace_back([&] { EXPECT_THROW(reader.last_sequence(), StoreBusy); });
    }
  }
  EXPECT_LT(Steady::now() - begun, 5s);
  EXPECT_TRUE(has_no_session_that_waits());
}

TEST_F(MissingStandby, IsNamedByWritesOfModules) {
  miss_standby();
  const auto write = [](database::Connection& connection) {
    connection.execute("UPDATE stela.stela_configuration SET epoch = gen_random_uuid()");
  };
  EXPECT_THAT(message_of<StoreBusy>(
                  [&] { store_.database().write_along(write, database::Sync::as_stored); }),
              names_standby());
  EXPECT_THAT(
      message_of<StoreBusy>([&] { store_.database().write(write, database::Sync::as_stored); }),
      names_standby());
  EXPECT_TRUE(has_no_session_that_waits());
}

TEST_F(MissingStandby, IsNoticedByRolesThatAskForNoWarnings) {
  server_.ask("ALTER ROLE postgres SET client_min_messages = error");
  const test::Pooler pooler{server_};
  for (const std::string& url : {server_.url(), pooler.conninfo()}) {
    Store quiet = open(url, {.commit_timeout = 300ms});
    miss_standby();
    EXPECT_THAT(message_of<CommitInDoubt>([&] { append(quiet, "order-1"); }), names_standby());
    EXPECT_THROW(quiet.last_sequence(), StoreBusy);
    // A function of the user's may ask for none, too.
    const auto write = [](database::Connection& connection) {
      connection.execute(
          "UPDATE stela.stela_configuration SET epoch = gen_random_uuid(); "
          "SELECT set_config('client_min_messages', 'error', true)");
    };
    EXPECT_THROW(quiet.database().write_along(write, database::Sync::as_stored), StoreBusy);
    EXPECT_THROW(quiet.database().write(write, database::Sync::as_stored), StoreBusy);
    name_standbys("");
  }
}

TEST_F(MissingStandby, DoesNotHoldUpReports) {
  Store report = open(server_.url(), {.durable_reads = false, .commit_timeout = 60s});
  miss_standby();
  append_in_doubt();
  const auto begun = Steady::now();
  EXPECT_EQ(report.last_sequence(), GlobalSequence{2});
  int events = 0;
  for (const StoredEvent& event : report.read_all()) events += event.sequence.value() > 0 ? 1 : 0;
  EXPECT_EQ(events, 2);
  report.database().read_snapshot([](database::Connection&) {});
  EXPECT_LT(Steady::now() - begun, 10s);
}

TEST_F(MissingStandby, IsForgottenOnceItIsNoLongerNamed) {
  miss_standby();
  append_in_doubt();
  name_standbys("");
  EXPECT_EQ(append(store_, "order-1").first, GlobalSequence{3});
  EXPECT_EQ(store_.last_sequence(), GlobalSequence{3});
}

TEST_F(MissingStandby, IsNoLostConnection) {
  // A server that waits for its standby says nothing for longer than any other may.
  Store patient =
      open(server_.url(), {.busy_timeout = 200ms, .reply_timeout = 1200ms, .commit_timeout = 60s});
  miss_standby();
  std::optional<AppendResult> result;
  std::jthread appending{[&] { result = append(patient, "order-1"); }};
  EXPECT_TRUE(eventually([&] {
    return server_.ask(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' "
               "AND clock_timestamp() - xact_start > interval '2.5 s'") == "1";
  }));
  name_standbys("");
  appending.join();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->first, GlobalSequence{2});
}

}  // namespace
}  // namespace stela::postgres::standby_wait_test

// A store that moves from one engine to the other with its outbox: the relay continues.
#include "nats/jetstream.hpp"
#include "support/histories.hpp"
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/soundness.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/postgres.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace stela::test::postgres_move_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Move : public ::testing::Test {
 protected:
  Store on_sqlite(const std::string& name) { return sqlite::open(dir_.file(name)); }
  Store on_postgres(const std::string& schema) {
    return postgres::open(server_.url(), {.schema = schema});
  }
  std::string exported(Store& store) {
    std::ostringstream out;
    EXPECT_TRUE(export_store(store, out, {.states = states_}).finished);
    return out.str();
  }
  ImportResult import(Store& store, const std::string& text) {
    std::istringstream in{text};
    return import_store(store, in, {.states = states_});
  }
  void append_orders(Store& store, int count) {
    for (int i = 0; i < count; ++i) {
      append(store, "order-" + std::to_string(i % 3),
             {{"order.placed", 1, true, "{\"n\":" + std::to_string(++placed_) + "}"}});
    }
  }
  /// Until nothing is pending.
  void relay(Store& store) {
    Outbox outbox{store};
    nats::Publisher publisher{{.url = nats_.url(), .stream = "SHOP", .ensure_stream = true}};
    Relay relay{outbox, publisher};
    OutboxOperations operations{store};
    EXPECT_TRUE(eventually([&] {
      relay.run_once();
      const OutboxStatus status = operations.status();
      return status.partitions.front().pending + status.partitions.front().redeliveries == 0;
    }));
  }
  void append_one(Store& store, std::string_view stream, std::size_t size) {
    append(store, stream, {{"order.placed", 1, true, '"' + std::string(size, 'x') + '"'}});
  }
  /// Of each event: "3 parked".
  static std::vector<std::string> states_of(OutboxOperations& operations) {
    std::vector<std::string> states;
    for (std::int64_t sequence = 1; sequence <= 6; ++sequence) {
      const auto message = operations.show(GlobalSequence{sequence});
      states.push_back(std::to_string(sequence) + ' ' +
                       (message ? std::string{to_string(message->state)} : "unknown") +
                       (message ? ' ' + message->last_error : std::string{}));
    }
    return states;
  }
  std::vector<std::string> at_broker() {
    JetStream stream{nats_.url()};
    std::vector<std::string> payloads;
    for (const auto& message : stream.messages("SHOP")) payloads.push_back(message.payload);
    return payloads;
  }
  std::vector<std::string> placed() const {
    std::vector<std::string> all;
    for (int i = 1; i <= placed_; ++i) all.push_back("{\"n\":" + std::to_string(i) + "}");
    return all;
  }
  std::vector<std::string> problems(Store& store) {
    const auto check = outbox_check();
    IntegrityCheck* const checks[] = {check.get()};
    return problems_of(store, {.checks = checks});
  }

  TempDir dir_;
  PostgresServer server_;
  NatsServer nats_{"max_payload: 4000"};
  std::unique_ptr<StateTransfer> outbox_ = outbox_state();
  std::array<StateTransfer*, 1> states_{outbox_.get()};
  int placed_ = 0;
};

/// The version that made the export knew more of a message.
TEST_F(Move, IgnoresColumnsThatItDoesNotHave) {
  Store first = on_sqlite("first.db");
  {
    const Outbox outbox{first};
    append_orders(first, 3);
  }
  std::string text = exported(first);
  EXPECT_THAT(text, Not(HasSubstr("position\":")));
  for (const auto& [table, number] : {std::pair{"outbox_messages", "position"},
                                      std::pair{"outbox_partitions", "last_position"}}) {
    const std::string row = "{\"state\":\"" + std::string{table} + "\",\"row\":{";
    ASSERT_NE(text.find(row), std::string::npos);
    for (std::size_t at = 0; (at = text.find(row, at)) != std::string::npos;) {
      at += row.size();
      text.insert(at, "\"" + std::string{number} + "\":7,");
    }
  }

  for (const bool on_server : {false, true}) {
    Store moved = on_server ? on_postgres("moved") : on_sqlite("moved.db");
    import(moved, text);
    EXPECT_EQ(OutboxOperations{moved}.status().pending, 3);
    EXPECT_THAT(problems(moved), IsEmpty());
  }
}

/// So they were written on PostgreSQL: with all columns, and flags as booleans. Even older ones had
/// fewer columns.
TEST_F(Move, TakesExportsThatSayMoreOrLess) {
  Store first = on_sqlite("first.db");
  {
    const Outbox outbox{first};
    append_one(first, "order-0", 5000);
    append_one(first, "order-1", 10);
  }
  relay(first);
  OutboxOperations{first}.republish({.from = GlobalSequence{2}, .to = GlobalSequence{2}});
  const std::string text = exported(first);
  std::string older = text;
  for (const auto& [now, then] :
       {std::pair{R"("was_lost":0)", R"("was_lost":false,"claimed_until":0,"claim":null)"},
        std::pair{R"("takeovers":0,)", R"("owner":"worker","lease_until":9,"stopped":null,)"}}) {
    ASSERT_NE(older.find(now), std::string::npos) << now;
    for (std::size_t at = 0; (at = older.find(now, at)) != std::string::npos;) {
      older.replace(at, std::string_view{now}.size(), then);
    }
  }

  for (const bool on_server : {false, true}) {
    Store moved = on_server ? on_postgres("moved") : on_sqlite("moved.db");
    import(moved, older);
    std::string again = exported(moved);
    for (std::size_t at = 0; (at = again.find(":false", at)) != std::string::npos;) {
      again.replace(at, 6, ":0");
    }
    const std::string_view tables = R"({"state":"outbox_generations")";
    EXPECT_EQ(again.substr(again.find(tables)), text.substr(text.find(tables)));
    EXPECT_THAT(problems(moved), IsEmpty());
  }
}

TEST_F(Move, LetsTheRelayContinueOnPostgresAndBackOnSqlite) {
  Store first = on_sqlite("first.db");
  {
    const Outbox outbox{first};
    append_orders(first, 4);
    append(first, "order-0", {{"order.noted", 1, false, "{}"}}, "the-command");
  }
  relay(first);
  {
    const Outbox outbox{first};
    append_orders(first, 3);
  }

  Store moved = on_postgres("moved");
  const ImportResult to_server = import(moved, exported(first));
  EXPECT_EQ(to_server.imported, 8);
  EXPECT_EQ(to_server.append_ids, 1);
  EXPECT_EQ(full_lines(moved.read_all()), full_lines(first.read_all()));
  moved = on_postgres("moved");
  EXPECT_EQ(moved.id(), first.id());
  EXPECT_THAT(problems(moved), IsEmpty());
  relay(moved);
  {
    const Outbox outbox{moved};
    EXPECT_TRUE(
        append(moved, "order-0", {{"order.noted", 1, false, "{}"}}, "the-command").repeated);
    append_orders(moved, 2);
  }

  Store back = on_sqlite("back.db");
  import(back, exported(moved));
  EXPECT_EQ(full_lines(back.read_all()), full_lines(moved.read_all()));
  back = on_sqlite("back.db");
  EXPECT_EQ(back.id(), first.id());
  relay(back);
  EXPECT_THAT(problems(back), IsEmpty());
  EXPECT_EQ(at_broker(), placed());
}

TEST_F(Move, KeepsWhatIsParkedDiscardedAndToBeSentAgain) {
  Store first = on_sqlite("first.db");
  {
    const Outbox outbox{first};
    for (const char* const stream : {"order-0", "order-1"}) append_one(first, stream, 10);
    for (const std::size_t size : {5000U, 10U}) append_one(first, "order-2", size);
    append_one(first, "order-3", 5000);
  }
  relay(first);
  OutboxOperations operations{first};
  operations.discard({.sequences = {GlobalSequence{5}}});
  operations.republish({.from = GlobalSequence{1}, .to = GlobalSequence{2}});
  {
    const Outbox outbox{first};
    append_one(first, "order-0", 10);
  }
  EXPECT_EQ(operations.status().parked, 2);

  Store moved = on_postgres("moved");
  import(moved, exported(first));
  OutboxOperations there{moved};
  EXPECT_EQ(states_of(there), states_of(operations));
  EXPECT_EQ(there.status().parked, 2);
  EXPECT_EQ(there.actions().size(), operations.actions().size());
  EXPECT_THAT(problems(moved), IsEmpty());

  Store back = on_sqlite("back.db");
  import(back, exported(moved));
  OutboxOperations again{back};
  EXPECT_EQ(states_of(again), states_of(operations));
  EXPECT_EQ(exported(back), exported(first));
}

TEST_F(Move, LoadsNoStateOfAnExportWithoutItsEnd) {
  Store first = on_sqlite("first.db");
  {
    const Outbox outbox{first};
    append_orders(first, 3);
  }
  const std::string text = exported(first);
  Store moved = on_postgres("moved");
  const std::string cut = text.substr(0, text.rfind("{\"state\":\"end\""));
  EXPECT_THAT(message_of<UsageError>([&] { import(moved, cut); }),
              HasSubstr("the end of the export is missing"));
  EXPECT_THAT(StoreOperations{moved}.required_participants(), IsEmpty());

  EXPECT_EQ(import(moved, text).skipped, 3);
  EXPECT_EQ(StoreOperations{moved}.required_participants().size(), 1U);
  EXPECT_THAT(message_of<UsageError>([&] { import(moved, text); }),
              HasSubstr("has an outbox already"));
}

TEST_F(Move, RefusesAStoreOfAnotherHistory) {
  Store first = on_sqlite("first.db");
  append(first, "order-a", 2);
  Store other = on_postgres("other");
  append(other, "order-b");
  EXPECT_THAT(message_of<UsageError>([&] { import(other, exported(first)); }),
              HasSubstr("import it into an empty store"));
  EXPECT_EQ(other.last_sequence(), GlobalSequence{1});
}

TEST_F(Move, RefusesToExportWhileAWorkerOwnsAPartition) {
  std::array<Store, 2> stores{on_sqlite("first.db"), on_postgres("first")};
  for (Store& store : stores) {
    Outbox outbox{store};
    nats::Publisher publisher{{.url = nats_.url(), .stream = "SHOP", .ensure_stream = true}};
    Relay relay{outbox, publisher};
    relay.run_once();
    EXPECT_THAT(message_of<UsageError>([&] { exported(store); }),
                HasSubstr("owns partition all; stop all workers"));
  }
}

}  // namespace
}  // namespace stela::test::postgres_move_test

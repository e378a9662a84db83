// Timers that move with their store from one engine to the other, and back.
#include "projections/bookings.hpp"
#include "support/postgres_server.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/postgres.hpp>
#include <stela/projections.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace stela::test::postgres_timer_move_test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class TimerMove : public ::testing::Test {
 protected:
  Store on_sqlite(const std::string& name, Codec codec) {
    return sqlite::open(dir_.file(name), {.codec = codec, .clock = &clock_});
  }
  Store on_postgres(const std::string& schema, Codec codec) {
    return postgres::open(server_.url(), {.codec = codec, .schema = schema, .clock = &clock_});
  }
  static RunnerTick run(Store& store) {
    Projections projections{store};
    projections.add_process(PaymentDeadline{});
    return Runner{projections}.run_once();
  }
  static std::string exported(Store& store) {
    const auto state = projection_state();
    StateTransfer* const states[] = {state.get()};
    std::ostringstream out;
    export_store(store, out, {.states = states});
    return out.str();
  }
  static void move(Store& from, Store& to) {
    const auto state = projection_state();
    StateTransfer* const states[] = {state.get()};
    std::istringstream in{exported(from)};
    import_store(to, in, {.states = states});
    EXPECT_EQ(exported(to), exported(from));
    EXPECT_EQ(run(to).timers_fired, 0) << "they are held";
    EXPECT_EQ(TimerOperations{to}.resume().size(), 1U);
  }

  TempDir dir_;
  PostgresServer server_;
  testing::ManualClock clock_;
};

TEST_F(TimerMove, LetsEachTimerFireOnceOnPostgresAndBackOnSqlite) {
  for (const Codec codec : {Codec::json, Codec::portable_binary}) {
    const std::string name{to_string(codec)};
    Store first = on_sqlite("first-" + name, codec);
    run(first);
    for (const int n : {10, 20, 30}) request(first, std::to_string(n), n);
    run(first);
    clock_.advance(10min);
    EXPECT_EQ(run(first).timers_fired, 1);

    Store second = on_postgres("moved_" + name, codec);
    move(first, second);
    clock_.advance(10min);
    EXPECT_EQ(run(second).timers_fired, 1);

    Store third = on_sqlite("third-" + name, codec);
    move(second, third);
    pay(third, "30");
    clock_.advance(24h);
    EXPECT_EQ(run(third).timers_fired, 0) << "it was paid";
    EXPECT_THAT(history(third), ElementsAre("10 requested", "20 requested", "30 requested",
                                            "10 cancelled", "20 cancelled", "30 paid"));
  }
}

}  // namespace
}  // namespace stela::test::postgres_timer_move_test

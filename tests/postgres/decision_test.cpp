// What a decision asks a server on PostgreSQL, and that it misses nothing.
#include "decisions/bookings.hpp"
#include "support/postgres_server.hpp"

#include <stela/eventstore.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stela::postgres::decision_test {
namespace {

using test::Guest;
using test::Move;
using test::PostgresServer;
using test::Room;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The statements that a server got, as its log has them.
class Statements {
 public:
  explicit Statements(const PostgresServer& server) : log_{server.folder() + "/server.log"} {
    next();
  }
  /// Those since the last time.
  std::vector<std::string> next() {
    std::vector<std::string> all;
    std::ifstream log{log_};
    log.seekg(read_);
    for (std::string line; std::getline(log, line);) {
      read_ += static_cast<std::streamoff>(line.size()) + 1;
      const std::size_t at = line.find("LOG:  execute ");
      if (at != std::string::npos) all.push_back(line.substr(line.find(": ", at + 6) + 2));
    }
    return all;
  }

 private:
  const std::string log_;
  std::streamoff read_ = 0;
};

struct Noted {
  static constexpr EventType event_type{"room.noted", 1, local};
  Id<Room> room;
  Id<Guest> guest;
  std::string text = {};
  static constexpr auto tags = stela::tags(&Noted::room, &Noted::guest);
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(room), CEREAL_NVP(guest), CEREAL_NVP(text));
  }
};

/// The texts of a room's events, and what is known of them besides.
struct OfRoom {
  using Events = EventSet<Noted>;
  Id<Room> room;
  static constexpr auto tags = stela::tags(&OfRoom::room);
  std::int64_t count = 0;
  std::int64_t last = 0;
  std::set<std::string> guests = {};

  void apply(const Recorded<Noted>& event) {
    ++count;
    EXPECT_LT(last, event.sequence().value());
    last = event.sequence().value();
    guests.insert(std::string{event.record().tags});
  }
};
struct OfGuest {
  using Events = EventSet<Noted>;
  Id<Guest> guest;
  static constexpr auto tags = stela::tags(&OfGuest::guest);
  std::int64_t count = 0;
  std::size_t bytes = 0;

  void apply(const Noted& event) {
    ++count;
    bytes += event.text.size();
  }
};
struct LastOfGuest {
  using Events = EventSet<Noted>;
  static constexpr bool last_only = true;
  Id<Guest> guest;
  static constexpr auto tags = stela::tags(&LastOfGuest::guest);
  std::string text = {};

  void apply(const Noted& event) { text = event.text; }
};

class PostgresDecisions : public ::testing::Test {
 protected:
  static Id<Room> room(int number) { return Id<Room>::from(std::to_string(number)); }
  static Id<Guest> guest(int number) { return Id<Guest>::from(std::to_string(number)); }
  /// Events of one room, each of the next of so many guests.
  void note(int events, int guests, std::size_t bytes = 1) {
    UnitOfWork unit{store};
    for (int i = 0; i < events; ++i) {
      const Noted one{room(1), guest(i % guests), std::string(bytes, 'a')};
      unit.append(one.room.stream(), ExpectedVersion::any(), one);
    }
    unit.commit();
  }

  PostgresServer server{{.settings = "log_statement = all"}};
  Store store = postgres::open(server.url());
};

TEST_F(PostgresDecisions, ReadAllOfTheirViewsAndTheirIdByOneStatement) {
  const Move move{room(1), guest(1)};
  for (const std::string_view id : {"a", "b"}) decide(store, {.append_id = id}, move);
  note(1, 1);
  Statements statements{server};
  EXPECT_FALSE(decide(store, {.append_id = "c"}, move).repeated);
  const auto sent = statements.next();
  ASSERT_GT(sent.size(), 2U);
  EXPECT_THAT(sent[0], HasSubstr("stela.append_ids AS a"));
  EXPECT_THAT(sent[1], HasSubstr("BEGIN"));

  EXPECT_TRUE(decide(store, {.append_id = "c"}, move).repeated);
  EXPECT_EQ(statements.next().front(), sent[0]);
}

TEST_F(PostgresDecisions, SeeAllEventsOfViewsThatHaveMany) {
  note(700, 3);
  decide(store, OfRoom{room(1)}, OfGuest{guest(0)}, LastOfGuest{guest(1)}, OfGuest{guest(7)},
         [&](Decision& decision, const OfRoom& of_room, const OfGuest& first,
             const LastOfGuest& last, const OfGuest& none) {
           EXPECT_EQ(of_room.count, 700);
           EXPECT_EQ(of_room.last, 700);
           EXPECT_THAT(of_room.guests, ElementsAre("guest-0", "guest-1", "guest-2"));
           EXPECT_EQ(first.count, 234);
           EXPECT_EQ(last.text, "a");
           EXPECT_EQ(none.count, 0);
           EXPECT_EQ(decision.position(), GlobalSequence{700});
         });
}

TEST_F(PostgresDecisions, SeeWhatTheirTransactionAppended) {
  note(2, 1);
  store.transact([&](Transaction& transaction) {
    for (int round = 1; round <= 2; ++round) {
      decide(transaction, OfGuest{guest(0)}, LastOfGuest{guest(0)},
             [&](Decision& decision, const OfGuest& all, const LastOfGuest& last) {
               EXPECT_EQ(all.count, round + 1);
               EXPECT_EQ(last.text, round == 1 ? "a" : "mine");
               decision.record(Noted{room(1), guest(0), "mine"});
             });
    }
  });
  EXPECT_EQ(store.last_sequence(), GlobalSequence{4});
}

TEST_F(PostgresDecisions, SeeAllEventsOfManyViews) {
  constexpr int most = 70;
  note(1400, 14);
  for (const int views : {1, 14, most}) {
    std::vector<OfGuest> guests;
    for (int i = 0; i < views; ++i) guests.push_back({guest(i)});
    decide(store, guests, [&](Decision&, const std::vector<OfGuest>& seen) {
      for (int i = 0; i < views; ++i) {
        EXPECT_EQ(seen[static_cast<std::size_t>(i)].count, i < 14 ? 100 : 0) << views << ' ' << i;
      }
    });
  }
}

TEST_F(PostgresDecisions, SeeEventsWithLargePayloads) {
  constexpr std::size_t large = 100'000;
  note(2, 1);
  note(3, 1, large);
  note(2, 2);
  decide(store, OfGuest{guest(0)}, OfGuest{guest(1)}, LastOfGuest{guest(0)},
         [&](Decision&, const OfGuest& zero, const OfGuest& one, const LastOfGuest& last) {
           EXPECT_EQ(zero.count, 6);
           EXPECT_EQ(zero.bytes, 3 * large + 3);
           EXPECT_EQ(one.count, 1);
           EXPECT_EQ(last.text, "a");
         });
  note(1, 1, large);
  decide(store, LastOfGuest{guest(0)},
         [&](Decision&, const LastOfGuest& last) { EXPECT_EQ(last.text.size(), large); });
}

TEST_F(PostgresDecisions, ReadFurtherViewsAtTheirPosition) {
  note(2, 1);
  int runs = 0;
  decide(store, OfGuest{guest(7)}, [&](Decision& decision, const OfGuest&) {
    if (runs++ == 0) note(1, 1);
    EXPECT_EQ(decision.read(OfGuest{guest(0)}).count, runs + 1);
    EXPECT_EQ(decision.read(LastOfGuest{guest(0)}).text, "a");
    decision.record(Noted{room(2), guest(7), "b"});
    EXPECT_EQ(decision.read(LastOfGuest{guest(7)}).text, "b");
  });
  EXPECT_EQ(runs, 2);
}

TEST_F(PostgresDecisions, EndAtADamagedEvent) {
  note(3, 1);
  server.ask("ALTER TABLE stela.events DISABLE TRIGGER ALL");
  server.ask("UPDATE stela.events SET checksum = 1 WHERE sequence = 2");
  EXPECT_THROW(decide(store, OfGuest{guest(0)}, [](Decision&, const OfGuest&) {}), CorruptEvent);
  server.ask("ALTER TABLE stela.event_tags DISABLE TRIGGER ALL");
  server.ask("UPDATE stela.event_tags SET checksum = 1 WHERE sequence = 1");
  EXPECT_THROW(decide(store, OfRoom{room(1)}, [](Decision&, const OfRoom&) {}), CorruptEvent);
}

}  // namespace
}  // namespace stela::postgres::decision_test

// What follows the transaction, however it ends: kinds of events, aggregates, heads, snapshots.
#include "contract/event_store.hpp"
#include "support/orders.hpp"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace stela {
namespace {

using test::EventStoreContract;
using test::lines;
using ::testing::ElementsAre;

/// Decodes with one decoder for as long as it lives, as an inline projector does.
class Reader : public TransactionParticipant {
 public:
  std::string_view name() const noexcept override { return "reader"; }
  std::string_view detail() const noexcept override { return "1"; }
  bool runs_user_code() const noexcept override { return true; }
  void on_append(Transaction&, std::span<const StoredEvent> events) override {
    for (const StoredEvent& event : events) {
      decoder_.decode(event, [&]<class E>(const E&) { seen.emplace_back(E::event_type.name); });
    }
  }
  std::vector<std::string> seen;

 private:
  EventDecoder<test::OrderEvents> decoder_{Codec::json};
};

TEST_P(EventStoreContract, ShowsNewTypesAsWhatTheyAreAfterOthersWereRolledBack) {
  Reader reader;
  store->attach(reader);
  const StreamId order = StreamId::parse("order-1");
  const auto append = [&](EventLog& log, const NewEvent& event) {
    const StreamAppend one{order, ExpectedVersion::any(), {&event, 1}};
    log.append({.streams = {&one, 1}});
  };
  const NewEvent shipped{"order.shipped", 1, true, R"({"carrier":"dhl"})"};
  const NewEvent noted{"order.noted", 1, true, R"({"text":"x"})"};

  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    append(transaction, shipped);
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  append(*store, noted);
  append(*store, shipped);

  EXPECT_THAT(reader.seen, ElementsAre("order.shipped", "order.noted", "order.shipped"));
  EXPECT_THAT(lines(store->read_all()),
              ElementsAre("1 order-1@1 order.noted", "2 order-1@2 order.shipped"));
}

TEST_P(EventStoreContract, LearnsNoTypesFromReadsBesideATransactionThatRollsBack) {
  const StreamId order = StreamId::parse("order-1");
  const NewEvent event{"a", 1, false, "{}"};
  const StreamAppend one{order, ExpectedVersion::any(), {&event, 1}};
  EXPECT_THROW(store->transact([&](Transaction& transaction) {
    transaction.append({.streams = {&one, 1}});
    (void)lines(store->read_all());
    throw std::runtime_error{"no"};
  }),
               std::runtime_error);
  append("order-1", {"b", "a"});

  EXPECT_THAT(lines(store->read_all()), ElementsAre("1 order-1@1 b", "2 order-1@2 a"));
  EXPECT_THAT(lines(store->read_all({.event_types = {"a"}})), ElementsAre("2 order-1@2 a"));
}

}  // namespace
}  // namespace stela

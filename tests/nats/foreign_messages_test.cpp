// Messages of a stream that no relay published: nothing in them is trusted.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "nats/wire_client.hpp"
#include "support/messages.hpp"

#include <stela/framework/error.hpp>
#include <stela/nats/detail/stream_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace stela::foreign_messages_test {
namespace {

using test::eventually;
using test::Ledger;
using test::OrderPlaced;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Headers = std::map<std::string, std::string>;

std::string head_of(const Headers& headers, const std::string& first_line = "NATS/1.0") {
  std::string head = first_line + "\r\n";
  for (const auto& [name, value] : headers) head += name + ": " + value + "\r\n";
  return head + "\r\n";
}

/// A shop whose stream others may write to, and a service that consumes it.
class ForeignMessages : public ::testing::Test {
 protected:
  ForeignMessages() {
    consumer.on<OrderPlaced>(Ledger::note<OrderPlaced>);
    place("1");
    genuine = *broker.message("SHOP", 1);
  }

  void place(const std::string& key) {
    shop.place(key);
    ASSERT_EQ(shop.publish().published, 1);
  }
  /// Returns when the stream has it.
  void store(const std::string& head, const std::string& payload = {}) {
    const std::uint64_t last = broker.last_sequence("SHOP");
    others.publish("shop.order.placed", head, payload);
    ASSERT_TRUE(eventually([&] { return broker.last_sequence("SHOP") == last + 1; })) << head;
  }
  /// The headers of a genuine message, but for what lets the server drop a second one.
  Headers copied() const {
    Headers headers = genuine.headers;
    headers.erase("Nats-Msg-Id");
    return headers;
  }
  /// A genuine message, changed.
  void forge(const std::function<void(Headers&)>& change) {
    Headers headers = copied();
    change(headers);
    store(head_of(headers), genuine.payload);
  }
  std::vector<std::string> errors() {
    std::vector<std::string> all;
    for (const nats::ParkedMessage& parked : inbox.parked()) all.push_back(parked.error);
    return all;
  }

  test::TempDir dir = test::TempDir::in_memory();
  test::NatsServer server;
  test::JetStream broker{server.url()};
  test::WireClient others{server.url()};
  test::Shop shop{dir.file("shop.db"), server.url(), {.fence = Fence::none}};
  Ledger ledger{dir.file("billing.db")};
  nats::Consumer consumer{ledger.store, {.url = server.url(), .name = "billing", .stream = "SHOP"}};
  nats::InboxOperations inbox{ledger.store};
  test::RawMessage genuine;
};

/// What servers say to a request; a stored message may say it, too.
const std::vector<std::string> statuses{"100",
                                        "100 Idle Heartbeat",
                                        "200",
                                        "404",
                                        "404 No Messages",
                                        "408 Request Timeout",
                                        "409",
                                        "409 Message Size Exceeds MaxBytes",
                                        "409 Batch Completed",
                                        "409 Consumer Deleted",
                                        "500",
                                        "503",
                                        "503 No Responders",
                                        "599",
                                        "5",
                                        "-1",
                                        "99999999999",
                                        "nonsense",
                                        "503503503"};

TEST_F(ForeignMessages, WithAStatusOfAServersAreParked) {
  int placed = 1;
  for (const std::string& status : statuses) {
    store("NATS/1.0 " + status + "\r\n\r\n");
    store("NATS/1.0 " + status + "\r\n\r\n", "{}");
    place(std::to_string(++placed));
  }
  store("NATS/1.0\r\nStatus: 503\r\n\r\n");
  store("NATS/1.0 503\r\nDescription: No Messages\r\nNats-Pending-Messages: 7\r\n\r\n");

  const nats::ConsumerTick tick = consumer.run_once();

  EXPECT_EQ(tick.handled, placed);
  EXPECT_EQ(tick.parked, static_cast<std::int64_t>(2 * statuses.size() + 2));
  EXPECT_EQ(tick.gaps, 0);
  EXPECT_THAT(errors(), Each(HasSubstr("the message isn't one of Stela's")));
  EXPECT_THAT(ledger.lines(), SizeIs(placed));
  EXPECT_EQ(consumer.run_once().handled, 0);
}

TEST_F(ForeignMessages, WithAStatusAreParkedEvenIfTheRestIsGenuine) {
  Headers headers = copied();
  headers["ce-id"] = "01a1fde2-7840-7402-9112-131415161718";
  store(head_of(headers, "NATS/1.0 503"), genuine.payload);

  EXPECT_EQ(consumer.run_once().parked, 1);

  EXPECT_THAT(errors(), ElementsAre(HasSubstr("header 'Status'")));
}

TEST_F(ForeignMessages, WithAStatusDontEndAReaderOfTheStream) {
  for (const std::string& status : statuses) store("NATS/1.0 " + status + "\r\n\r\n");
  store(head_of(copied(), "NATS/1.0 503"), genuine.payload);
  place("2");
  nats::StreamReader reader{{.url = server.url(),
                             .prefix = "shop",
                             .stream = "SHOP",
                             .fence = Fence::none,
                             .publish_timeout = std::chrono::milliseconds{2'000}}};

  OutboxOperations operations{shop.store};
  const Compared compared = operations.compare(reader, GlobalSequence{1}, Mode::dry_run);

  EXPECT_EQ(compared.foreign, static_cast<std::int64_t>(statuses.size()) + 1);
  EXPECT_EQ(compared.found, 2);
  EXPECT_EQ(compared.missing, 0);
}

TEST_F(ForeignMessages, WithForgedNumbersAreParked) {
  const std::string most = std::to_string(INT64_MAX);
  forge([&](Headers& h) { h["ce-streamversion"] = h["Stela-Sequence"] = most; });
  forge([&](Headers& h) { h["Stela-Sequence"] = "9223372036854775808"; });
  forge([&](Headers& h) { h["ce-streamversion"] = most; });
  forge([&](Headers& h) { h["ce-streamversion"] = "2"; });
  forge([&](Headers& h) { h["Stela-Stream-Previous"] = "1"; });
  forge([&](Headers& h) { h["Stela-Stream-Previous"] = most; });
  forge([&](Headers& h) { h["Stela-Stream-Previous"] = "-1"; });
  forge([&](Headers& h) { h["Stela-Sequence"] = "0"; });
  forge([&](Headers& h) { h["Stela-Redelivery"] = most; });
  forge([&](Headers& h) { h["Stela-Generation"] = "2"; });
  forge([&](Headers& h) { h["Stela-Generation"] = "1 1"; });
  forge([&](Headers& h) { h["Stela-Generation"] = "2 0"; });
  forge([&](Headers& h) { h["Stela-Generation"] = "2 5 6"; });
  place("2");

  const nats::ConsumerTick tick = consumer.run_once();

  EXPECT_THAT(ledger.lines(), ElementsAre("order-1@1 order.placed", "order-2@1 order.placed"));
  EXPECT_EQ(tick.parked, 13);
  const std::string range = "isn't a number from ";
  EXPECT_THAT(
      errors(),
      ElementsAre(HasSubstr("'Stela-Sequence' " + range), HasSubstr("'Stela-Sequence' " + range),
                  HasSubstr("'ce-streamversion' " + range),
                  HasSubstr("'ce-streamversion' is greater than 'Stela-Sequence'"),
                  HasSubstr("'Stela-Stream-Previous' isn't less than 'ce-streamversion'"),
                  HasSubstr("'Stela-Stream-Previous' " + range),
                  HasSubstr("'Stela-Stream-Previous' " + range),
                  HasSubstr("'Stela-Sequence' " + range), HasSubstr("'Stela-Redelivery' " + range),
                  HasSubstr("'Stela-Generation' isn't two numbers"),
                  HasSubstr("'Stela-Generation' " + range),
                  HasSubstr("'Stela-Generation' " + range),
                  HasSubstr("'Stela-Generation' " + range)));
}

TEST_F(ForeignMessages, WithIdsThatNothingHasAreParked) {
  const std::string nil(Uuid{}.to_string());
  forge([&](Headers& h) { h["ce-id"] = nil; });
  forge([&](Headers& h) { h["ce-causationid"] = nil; });
  forge([&](Headers& h) { h["Stela-Store"] = nil; });
  forge([&](Headers& h) { h["Stela-Store"] = std::string(5'000, 's'); });
  forge([&](Headers& h) { h["ce-id"] += '0'; });
  place("2");

  EXPECT_EQ(consumer.run_once().parked, 5);

  EXPECT_THAT(ledger.lines(), SizeIs(2));
  EXPECT_THAT(errors(), ElementsAre(HasSubstr("'ce-id' is the nil UUID"),
                                    HasSubstr("'ce-causationid' is the nil UUID"),
                                    HasSubstr("'Stela-Store' is the nil UUID"),
                                    HasSubstr("'Stela-Store' isn't a UUID"),
                                    HasSubstr("'ce-id' isn't a UUID")));
}

TEST_F(ForeignMessages, WithAHeaderTwiceAreParked) {
  const std::vector<std::string> names{
      "ce-id",       "ce-subject", "ce-streamversion",     "Stela-Sequence",
      "Stela-Store", "ce-type",    "Stela-Stream-Previous"};
  for (const std::string& name : names) {
    std::string head = head_of(copied());
    head.insert(head.size() - 2, name + ": " + genuine.headers.at(name) + "\r\n");
    store(head, genuine.payload);
  }
  place("2");

  EXPECT_EQ(consumer.run_once().parked, static_cast<std::int64_t>(names.size()));

  EXPECT_THAT(ledger.lines(), SizeIs(2));
  EXPECT_THAT(errors(), Each(HasSubstr("appears more than once")));

  for (const nats::ParkedMessage& parked : inbox.parked()) inbox.retry(parked.number);
  EXPECT_EQ(consumer.run_once().revived, 0);

  EXPECT_THAT(ledger.lines(), SizeIs(2));
  EXPECT_THAT(errors(), SizeIs(names.size()));
  EXPECT_THAT(errors(), Each(HasSubstr("appears more than once")));
}

}  // namespace
}  // namespace stela::foreign_messages_test

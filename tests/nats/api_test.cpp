// JetStream that is elsewhere: behind a leaf node, and in another account.
#include "nats/answers.hpp"
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"
#include "support/messages.hpp"
#include "support/secret_file.hpp"

#include <stela/framework/error.hpp>
#include <stela/nats/detail/stream_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace stela::api_test {
namespace {

using namespace std::chrono_literals;
using test::JetStream;
using test::NatsServer;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

const std::vector<std::string> all_orders{"order-1@1 order.placed", "order-2@1 order.placed",
                                          "order-3@1 order.placed"};

/// A relay, a reader and a consumer whose streams are kept elsewhere.
class Elsewhere : public ::testing::Test {
 protected:
  nats::PublisherOptions options_at(const std::string& url, const nats::JetStreamApi& api) {
    test::write_secret(dir_.file("password"), "p");
    return {.url = url,
            .prefix = "shop",
            .stream = "SHOP",
            .ensure_stream = true,
            .api = api,
            .publish_timeout = 2'000ms};
  }
  /// A relay makes the stream, fills it and finds what stands there when it comes again; what a
  /// reader then sees.
  int relay_and_read(const nats::PublisherOptions& options) {
    for (const std::string key : {"1", "2", "3"}) {
      test::Shop shop{dir_.file("shop.db"), options.url, {}, options};
      shop.place(key);
      EXPECT_TRUE(test::eventually([&] { return shop.publish().published == 1; }));
    }
    int found = 0;
    nats::StreamReader{options}.read(
        {}, [&](const FoundMessage& message) { EXPECT_EQ(message.sequence.value(), ++found); });
    return found;
  }
  /// What a consumer handles whose second message fails once.
  std::vector<std::string> consume(const nats::PublisherOptions& options) {
    test::Ledger ledger{dir_.file("billing.db")};
    nats::Consumer consumer{ledger.store,
                            {.url = options.url,
                             .api = options.api,
                             .credentials = options.credentials,
                             .name = "billing",
                             .stream = "SHOP",
                             .retry_backoff = 1ms}};
    bool has_failed = false;
    consumer.on<test::OrderPlaced>([&](auto& transaction, const auto& placed) {
      if (placed.stream().key() == "2" && !std::exchange(has_failed, true)) {
        throw std::runtime_error{"not now"};
      }
      test::Ledger::note(transaction, placed);
    });
    test::eventually([&] {
      consumer.run_once();
      return ledger.lines().size() == 3;
    });
    return ledger.lines();
  }

  test::TempDir dir_;
};

/// The port for leaf nodes, which the server picked and wrote into its log.
std::string leaf_port(const NatsServer& server) {
  std::string port;
  test::eventually([&] {
    std::stringstream log;
    log << std::ifstream{server.folder() + "/server.log"}.rdbuf();
    constexpr std::string_view said = "leafnode connections on 127.0.0.1:";
    const std::size_t at = log.str().find(said);
    if (at == std::string::npos) return false;
    port = log.str().substr(at + said.size(), 5);
    return true;
  });
  return port.substr(0, port.find_first_not_of("0123456789"));
}

TEST_F(Elsewhere, ADomainOfALeafNodeKeepsTheStream) {
  const NatsServer hub{
      "jetstream { store_dir: \"@\", domain: hub }\nleafnodes { listen: \"127.0.0.1:-1\" }"};
  const NatsServer leaf{
      "jetstream { store_dir: \"@\", domain: leaf }\nleafnodes { remotes [ { url: "
      "\"nats-leaf://127.0.0.1:" +
      leaf_port(hub) + "\" } ] }"};

  const auto options = options_at(hub.url(), {.domain = "leaf"});
  EXPECT_EQ(relay_and_read(options), 3);
  EXPECT_THAT(consume(options), UnorderedElementsAreArray(all_orders));

  EXPECT_EQ(JetStream{leaf.url()}.count("SHOP"), 3);
  EXPECT_THAT(JetStream{hub.url()}.streams(), IsEmpty());
}

TEST_F(Elsewhere, AnotherAccountsApiIsUsedWhereItWasImported) {
  const NatsServer server{
      "accounts {\n"
      "  KEEP: { jetstream: enabled, users: [ { user: keep, password: p } ], exports: [ "
      "{ service: \"$JS.API.>\", response: stream }, { service: \"$JS.ACK.>\" }, "
      "{ service: \"shop.>\" } ] }\n"
      "  SHOP: { users: [ { user: shop, password: p } ], imports: [ "
      "{ service: { account: KEEP, subject: \"$JS.API.>\" }, to: \"JS.shop.API.>\" }, "
      "{ service: { account: KEEP, subject: \"$JS.ACK.>\" } }, "
      "{ service: { account: KEEP, subject: \"shop.>\" } } ] }\n}"};
  auto options = options_at(server.url(), {.prefix = "JS.shop.API"});
  options.credentials = {.user = "shop", .password_file = dir_.file("password")};

  EXPECT_EQ(relay_and_read(options), 3);
  EXPECT_THAT(consume(options), UnorderedElementsAreArray(all_orders));

  const std::string keeper = "nats://keep:p@127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(JetStream{keeper}.count("SHOP"), 3);
  options.api = {};
  test::Answers answers;
  nats::Publisher publisher{options};
  publisher.connect(1, answers);
  ASSERT_EQ(answers.wait_for(0).kind, Answer::Kind::connected);
  publisher.read_back(1, {}, 1);
  EXPECT_EQ(answers.wait_for(1).kind, Answer::Kind::misconfigured);
}

TEST_F(Elsewhere, IsSaidInOneWay) {
  const auto problem = [](const nats::JetStreamApi& api) {
    const std::string of_consumer = test::message_of<UsageError>(
        [&] { nats::check(nats::ConsumerOptions{.api = api, .name = "billing"}); });
    const std::string of_publisher =
        test::message_of<UsageError>([&] { nats::check(nats::PublisherOptions{.api = api}); });
    EXPECT_EQ(of_consumer, of_publisher);
    return of_publisher;
  };
  nats::check(nats::PublisherOptions{.api = {.domain = "leaf"}});
  nats::check(nats::ConsumerOptions{.api = {.domain = "leaf"}, .name = "billing"});
  nats::check(nats::PublisherOptions{.api = {.prefix = "JS.shop.API"}});
  EXPECT_THAT(problem({.domain = "leaf", .prefix = "JS.shop.API"}), HasSubstr("give one"));
  EXPECT_THAT(problem({.domain = "a.b"}), HasSubstr("isn't one token"));
  EXPECT_THAT(problem({.prefix = "JS.shop."}), HasSubstr("can't begin a subject"));
  EXPECT_THAT(problem({.prefix = "JS.*.API"}), HasSubstr("can't begin a subject"));
}

TEST(SubjectPrefix, OfTheServersOwnSubjectsIsRefused) {
  const auto problem = [](const nats::PublisherOptions& options) {
    return test::message_of<UsageError>([&] { nats::check(options); });
  };
  for (const char* const prefix : {"$JS", "$SYS", "$KV", "$", "_INBOX"}) {
    const nats::PublisherOptions options{.prefix = prefix, .ensure_stream = true};
    EXPECT_THAT(problem(options), AllOf(HasSubstr("the prefix '" + std::string{prefix} + "'"),
                                        HasSubstr("the server's own"), HasSubstr("\"shop\"")));
    EXPECT_THAT(test::message_of<UsageError>([&] { nats::StreamReader{options}; }),
                HasSubstr("the server's own"));
  }
  for (const char* const prefix : {"shop", "shop$", "_shop", "INBOX"}) {
    EXPECT_EQ(problem({.prefix = prefix}), "nothing was thrown") << prefix;
  }
}

}  // namespace
}  // namespace stela::api_test

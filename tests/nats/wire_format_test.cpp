// The wire format as docs/reference/wire-format.md has it: its example, its rules for subjects and
// percent-encoding, and a client that isn't ours.
#include "nats/jetstream.hpp"
#include "nats/shop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

namespace stela::wire_format_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The block behind "<!-- vector: name -->" in the page.
std::string vector_of(const std::string& name) {
  std::ifstream file{STELA_SOURCE_DIR "/docs/reference/wire-format.md"};
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const std::size_t mark = text.find("<!-- vector: " + name + " -->");
  const std::size_t begin = text.find('\n', text.find("```", mark)) + 1;
  return text.substr(begin, text.find("```", begin) - begin);
}

/// Each byte of an id is one more than the byte before it.
class CountingRandom final : public Random {
 public:
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = next_++;
  }

 private:
  std::uint8_t next_ = 1;
};

class FixedClock final : public Clock {
 public:
  Timestamp now() const override { return *parse_timestamp("2026-11-21T11:34:00.000250Z"); }
  std::chrono::steady_clock::time_point steady_now() const override {
    return system_clock().steady_now();
  }
};

std::string in_text(const test::RawMessage& message) {
  std::string text = message.subject + "\n";
  for (const auto& [name, value] : message.headers) text += name + ": " + value + '\n';
  return text + '\n' + message.payload + '\n';
}

TEST(WireFormat, MatchesThePage) {
  const test::TempDir dir;
  const test::NatsServer server;
  CountingRandom random;
  const FixedClock clock;
  auto store = sqlite::open(dir.file("shop.db"), {.clock = &clock, .random = &random});
  Outbox outbox{store};
  nats::Publisher publisher{
      {.url = server.url(), .prefix = "shop", .stream = "SHOP", .ensure_stream = true}};
  Relay relay{outbox, publisher};
  const ContextScope scope{
      {.correlation_id = "checkout 7",
       .actor = "Zoë",
       .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
       .headers = {{"tenant", "50 % \"off\""}}}};
  auto order = test::Order::place(Id<test::Order>::from("café.7"), "jane", 4200);
  order.note("gift");
  order.ship("dhl");
  Repository<test::Order>{store}.save(order);
  relay.run_once();
  std::string shown = in_text(*test::JetStream{server.url()}.message("SHOP", 2));
  const std::string store_id = store.id().to_string();
  for (std::size_t at = 0; (at = shown.find(store_id)) != std::string::npos;) {
    shown.replace(at, store_id.size(), "<store id>");
  }

  EXPECT_EQ(shown, vector_of("message"));
}

TEST(WireFormat, FillsTheSubjectTemplate) {
  const test::TempDir dir;
  const test::NatsServer server;
  test::Shop shop{dir.file("shop.db"),
                  server.url(),
                  {},
                  {.subject = "{category}.{stream}.{header:tenant}.{partition}.{event}"}};
  const ContextScope scope{{.headers = {{"tenant", "a.b *"}}}};
  shop.place("café.7");
  shop.publish();

  EXPECT_EQ(test::JetStream{server.url()}.message("SHOP", 1)->subject,
            "shop.order.order-caf%C3%A9%2E7.a%2Eb%20%2A.all.order.placed");
}

TEST(WireFormat, RefusesTemplatesThatMakeNoSubject) {
  const auto problem = [](const std::string& subject) {
    try {
      nats::check(nats::PublisherOptions{.subject = subject});
    } catch (const UsageError& e) {
      return std::string{e.what()};
    }
    return std::string{"none"};
  };
  EXPECT_EQ(problem("v1.{event}"), "none");
  EXPECT_THAT(problem("{evnt}"), HasSubstr("asks for {evnt}; there are {event}"));
  EXPECT_THAT(problem("{event"), HasSubstr("'{' without its '}'"));
  EXPECT_THAT(problem("a..b"), HasSubstr("an empty token"));
  EXPECT_THAT(problem("{event}.>"), HasSubstr("'*' or '>'"));
  EXPECT_THAT(problem(""), HasSubstr("is empty"));
}

TEST(WireFormat, IsReadByTheJavaScriptClient) {
  // A client that can't be had fails the test: a wire format that only we have read is no format.
  const std::string fetch = STELA_SOURCE_DIR "/tests/nats/js/fetch.sh '" STELA_JAVASCRIPT_DIR "'";
  ASSERT_EQ(std::system(fetch.c_str()), 0);
  const test::TempDir dir;
  const test::NatsServer server;
  test::Shop shop{dir.file("shop.db"), server.url()};
  const ContextScope scope{{.actor = "Zoë"}};
  for (const char* const key : {"1", "café.7", "3"}) {
    shop.place(key);
    shop.note(key);
  }
  shop.ship("café.7");
  shop.publish();

  const std::string command =
      "node '" STELA_JAVASCRIPT_DIR "/read.mjs' " + server.url() + " SHOP 4 2>&1";
  FILE* const reader = popen(command.c_str(), "r");
  std::vector<std::string> lines;
  char line[4096];
  while (fgets(line, sizeof line, reader) != nullptr) lines.emplace_back(line);
  const int status = pclose(reader);

  EXPECT_EQ(status, 0);
  EXPECT_THAT(
      lines,
      ElementsAre(
          R"({"subject":"order-1","type":"order.placed","actor":"Zoë","payload":{"customer":"jane","total_cents":100}})"
          "\n",
          R"({"subject":"order-café.7","type":"order.placed","actor":"Zoë","payload":{"customer":"jane","total_cents":100}})"
          "\n",
          R"({"subject":"order-3","type":"order.placed","actor":"Zoë","payload":{"customer":"jane","total_cents":100}})"
          "\n",
          R"({"subject":"order-café.7","type":"order.shipped","actor":"Zoë","payload":{"carrier":"dhl"}})"
          "\n"));
}

}  // namespace
}  // namespace stela::wire_format_test

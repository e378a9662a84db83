// The console of all tenants: each answer and each action is about the tenant that was asked for.
#include "console/sha256.hpp"
#include "support/nats_server.hpp"
#include "tool/served_console.hpp"

#include <gmock/gmock.h>
#ifdef STELA_TESTS_POSTGRES
#include "support/postgres_server.hpp"
#endif

namespace stela::tool::console_tenants_test {
namespace {

using test::body_of;
using test::member;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ConsoleOfTenants : public test::ServedConsole {
 protected:
  virtual std::string registry() { return folder_.file("tenants.db"); }
  virtual std::string at() { return "data/{tenant}.db"; }

  void SetUp() override {
    test::write_private(people_file_, "ann view,payloads,operate,admin " + sha256("ann's") + "\n");
    well({"tenants", "init", "--at", at()});
    well({"tenants", "create", "a", "b"});
    for (const char* const tenant : {"a", "b"}) {
      well({"outbox", "enable", "--tenant", tenant});
      append(tenant);
    }
    well(with_broker({"outbox", "work", "--ensure-stream", "--once"}));
    append("a");
    append("b");
  }

  test::RunOptions here() { return {.environment = {{"STELA_TENANTS", registry()}}}; }
  std::string well(const std::vector<std::string>& words) { return test::run_well(words, here()); }
  std::vector<std::string> with_broker(std::vector<std::string> words) const {
    words.insert(words.end(), {"--nats", broker_.url(), "--stream", "SHOP", "--prefix", "shop"});
    return words;
  }
  void append(const std::string& tenant) {
    well({"events", "append", "--stream", "order-1", "--type", "order.placed", "--publish",
          "--data", "{}", "--tenant", tenant});
  }

  void serve(const std::vector<std::string>& more) {
    auto words = with_broker(
        {"serve", "--listen", "0", "--port-file", port_file_, "--people-file", people_file_});
    words.insert(words.end(), more.begin(), more.end());
    console_.emplace(words, here());
    ASSERT_TRUE(test::eventually([&] { return test::text_of(port_file_).ends_with('\n'); }))
        << console_->err();
    port_ = static_cast<std::uint16_t>(std::stoi(test::text_of(port_file_)));
  }
  std::string of_b(const std::string& path) const {
    return body_of(request("GET /api/v1/s/b/" + path, bearer("ann's")));
  }
  std::string post(const std::string& path, const std::string& body) const {
    return body_of(post_json("/api/v1/s/b/jobs" + path, bearer("ann's"), body));
  }
  /// What came of an action on tenant b, confirmed if it asked.
  std::string done(const std::string& body) {
    const std::string number = member(post("", body), "job");
    const auto is = [&](const char* state) {
      return member(of_b("jobs/" + number), "state") == state;
    };
    EXPECT_TRUE(test::eventually([&] { return is("asks") || is("done"); }));
    if (is("asks")) post("/" + number + "/confirm", "{}");
    EXPECT_TRUE(test::eventually([&] { return is("done"); })) << of_b("jobs/" + number);
    return of_b("jobs/" + number);
  }
  void acts_on_b_alone() {
    EXPECT_THAT(of_b("check"), Not(HasSubstr("JetStream")));
    EXPECT_THAT(done(R"({"command":"outbox reconcile","options":{"against-broker":""}})"),
                AllOf(HasSubstr(R"("checked":1)"), HasSubstr(R"("missing":0)")));
    done(R"({"command":"outbox republish","options":{"stream":"order-1"}})");
    EXPECT_THAT(well({"log", "--tenant", "b", "--json"}), HasSubstr("ann@"));
    EXPECT_EQ(well({"log", "--tenant", "a", "--json"}), "");
  }

  const std::string people_file_ = folder_.file("people");
  test::NatsServer broker_;
};

TEST_F(ConsoleOfTenants, ActsOnTheOneThatIsAskedFor) {
  serve({"--allow-actions"});
  acts_on_b_alone();
  well({"tenants", "drop", "b", "--reason", "left", "--grace", "0s"});
  well({"tenants", "erase", "b", "--confirm", "b"});
  EXPECT_THAT(of_b("check"), HasSubstr("is no longer there (erased"));
}

TEST_F(ConsoleOfTenants, IsAlsoServedForOne) {
  serve({"--allow-actions", "--tenant", "b"});
  acts_on_b_alone();
  EXPECT_THAT(
      test::run({"streams", "list", "--tenant", "b", "--db", folder_.file("x.db")}, here()).err,
      HasSubstr("as which role a server is used"));
}

TEST_F(ConsoleOfTenants, AnswersAgentsAboutOne) {
  auto options = here();
  options.input =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"preview_outbox_discard","arguments":{"stream":"order-1"}}})"
      "\n";
  EXPECT_THAT(test::run_well({"mcp", "--tenant", "b"}, options),
              HasSubstr("outbox discard --stream=order-1 --tenant b"));
}

#ifdef STELA_TESTS_POSTGRES
class ConsoleOfTenantsOnPostgres : public ConsoleOfTenants {
 protected:
  std::string registry() override { return server_.url(); }
  std::string at() override { return server_.url(); }

  test::PostgresServer server_;
};

TEST_F(ConsoleOfTenantsOnPostgres, ActsOnTheOneThatIsAskedFor) {
  serve({"--operate-as", server_.url(), "--set", "store.schema=tenant_a"});
  acts_on_b_alone();
}
#endif

}  // namespace
}  // namespace stela::tool::console_tenants_test

// Who we are to the server, and who it is to us.
#include "nats/answers.hpp"
#include "nats/nonce_server.hpp"
#include "nats/operator.hpp"
#include "nats/shop.hpp"
#include "support/messages.hpp"
#include "support/nats_server.hpp"
#include "support/secret_file.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/error.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/detail/stream_reader.hpp>
#include <stela/nats/publisher.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace stela::access_test {
namespace {

using namespace std::chrono_literals;
using test::NatsServer;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = Answer::Kind;

constexpr const char* canary = "c4n4ry-in-the-mine";

class Access : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    return test::write_secret(dir.file(name), text + '\n');
  }
  /// A certificate authority, and certificates of its for "localhost", and for 127.0.0.1.
  void make_certificates() {
    const std::string in = "cd " + dir.path().string() + " && ";
    const std::string quiet = " 2>/dev/null";
    ASSERT_EQ(std::system((in +
                           "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca "
                           "-keyout ca.key -out ca.pem" +
                           quiet)
                              .c_str()),
              0);
    for (const std::string name : {"server", "client", "numbered"}) {
      const std::string common = name == "numbered" ? "numbered" : "localhost";
      const std::string host = name == "numbered" ? "IP:127.0.0.1" : "DNS:localhost";
      ASSERT_EQ(std::system((in + "openssl req -newkey rsa:2048 -nodes -subj /CN=" + common +
                             " -keyout " + name + ".key -out " + name + ".csr" + quiet +
                             " && printf subjectAltName=" + host +
                             " > san && openssl x509 -req -in " + name +
                             ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san "
                             "-out " +
                             name + ".pem" + quiet)
                                .c_str()),
                0);
    }
  }

  Answer connect(const nats::PublisherOptions& options) {
    test::Answers answers;
    nats::Publisher publisher{options};
    publisher.connect(1, answers);
    return answers.wait_for(0);
  }
  nats::PublisherOptions options(const NatsServer& server) const {
    return {.url = server.url(), .connect_timeout = 1'000ms, .publish_timeout = 1'000ms};
  }

  test::TempDir dir;
};

TEST_F(Access, ByUserAndPassword) {
  const NatsServer server{"authorization { user: shop, password: " + std::string{canary} + " }"};
  auto with = options(server);

  EXPECT_EQ(connect(with).kind, Kind::misconfigured);
  with.credentials = {.user = "shop", .password_file = file("password", canary)};
  EXPECT_EQ(connect(with).kind, Kind::connected);
  with.credentials.password_file = file("wrong", std::string{canary} + "-not");
  const Answer refused = connect(with);
  EXPECT_EQ(refused.kind, Kind::misconfigured);
  EXPECT_THAT(refused.detail, Not(HasSubstr(canary)));
}

TEST_F(Access, ByToken) {
  const NatsServer server{"authorization { token: " + std::string{canary} + " }"};
  auto with = options(server);

  EXPECT_EQ(connect(with).kind, Kind::misconfigured);
  with.credentials = {.token_file = file("token", canary)};
  EXPECT_EQ(connect(with).kind, Kind::connected);
}

TEST_F(Access, ByNkey) {
  // A pair that was made for this test.
  const std::string key = "UCFKTE5RZUNDXXDXOXUUSRCLPWI45PFJZKIBXCE6HITXXIVKXRLWDABR";
  const NatsServer server{"authorization { users: [ { nkey: " + key + " } ] }"};
  auto with = options(server);

  EXPECT_EQ(connect(with).kind, Kind::misconfigured);
  with.credentials = {
      .nkey = key,
      .nkey_seed_file = file("seed", "SUAMWVJSVPWGW52TATWTRTUHZYHQ2HKCT5VTZIA5T6TXKQH3ITEYL3CT7U")};
  const Answer answer = connect(with);
  EXPECT_EQ(answer.kind, Kind::connected) << answer.detail;
}

TEST_F(Access, ByCredsFile) {
  const NatsServer server{test::operator_config()};
  auto with = options(server);

  EXPECT_EQ(connect(with).kind, Kind::misconfigured);
  with.credentials = {.creds_file = file("relay.creds", test::creds_file())};
  const Answer answer = connect(with);
  EXPECT_EQ(answer.kind, Kind::connected) << answer.detail;
  with.credentials.creds_file = file("other.creds", test::creds_file(test::other_seed));
  const Answer refused = connect(with);
  EXPECT_EQ(refused.kind, Kind::misconfigured);
  EXPECT_THAT(refused.detail, Not(HasSubstr(test::other_seed)));
}

/// The user's signatures of the first two nonces begin with a zero byte.
TEST_F(Access, ByCredsFileWhateverTheSignatureBeginsWith) {
  const test::NonceServer server{{"XlTyeLusD8_Ngjg", "VHy0nGVPvOYNQRk", "El51YMMmUahBRvw"}};
  const nats::PublisherOptions with{
      .url = server.url(),
      .credentials = {.creds_file = file("relay.creds", test::creds_file())},
      .connect_timeout = 10'000ms};

  const Answer answer = connect(with);

  EXPECT_EQ(answer.kind, Kind::connected) << answer.detail;
}

TEST_F(Access, OfAConsumerByCredsFile) {
  const NatsServer server{test::operator_config()};
  auto with = options(server);
  with.credentials = {.creds_file = file("relay.creds", test::creds_file())};
  with.ensure_stream = true;
  test::Answers answers;
  nats::Publisher publisher{with};
  publisher.connect(1, answers);
  ASSERT_EQ(answers.wait_for(0).kind, Kind::connected);
  publisher.read_back(1, {}, 1);
  ASSERT_EQ(answers.wait_for(1).kind, Kind::read_back);
  auto store = sqlite::open(dir.file("effects.db"));

  nats::Consumer allowed{store,
                         {.url = server.url(), .credentials = with.credentials, .name = "billing"}};
  nats::Consumer stranger{store, {.url = server.url(), .name = "billing"}};

  EXPECT_EQ(allowed.run_once(), nats::ConsumerTick{});
  EXPECT_THROW(stranger.run_once(), BrokerFailed);
}

TEST_F(Access, SaysThatItMayNotPublish) {
  const NatsServer server{
      "authorization { users: [ { user: shop, password: p, permissions: { publish: "
      "[\"$JS.API.>\"], subscribe: [\">\"] } } ] }"};
  auto with = options(server);
  with.credentials = {.user = "shop", .password_file = file("password", "p")};
  with.ensure_stream = true;
  test::Answers answers;
  nats::Publisher publisher{with};
  publisher.connect(1, answers);
  ASSERT_EQ(answers.wait_for(0).kind, Kind::connected);
  answers.clear();
  test::publish_event(publisher, 1, "order.placed");
  publisher.flush();

  const Answer answer = answers.wait_for(1);

  EXPECT_EQ(answer.kind, Kind::misconfigured);
  EXPECT_THAT(answer.detail, HasSubstr("order.placed"));
  EXPECT_FALSE(answers.find(0)) << "the session goes on";
}

/// Of a server that takes everybody, and lets its user `denied` publish all but these subjects.
std::string config_denying(const std::string& subjects) {
  return "authorization { users: [ { user: all, password: p }, { user: denied, password: p, "
         "permissions: { publish: { deny: [" +
         subjects + "] } } } ] }\nno_auth_user: all";
}

class DeniedConsumer : public Access, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Subjects, DeniedConsumer,
                         ::testing::Values("$JS.API.STREAM.INFO.SHOP",
                                           "$JS.API.CONSUMER.CREATE.SHOP.>",
                                           "$JS.API.CONSUMER.MSG.NEXT.SHOP.>"));

TEST_P(DeniedConsumer, NamesTheDeniedSubject) {
  const std::string denied = GetParam();
  const NatsServer server{config_denying('"' + denied + '"')};
  test::Shop shop{dir.file("shop.db"), server.url()};
  shop.place("1");
  shop.publish();
  test::Ledger ledger{dir.file("effects.db")};
  nats::Consumer consumer{
      ledger.store,
      {.url = server.url(),
       .credentials = {.user = "denied", .password_file = file("password", "p")},
       .name = "billing",
       .stream = "SHOP"}};
  consumer.on<test::OrderPlaced>(test::Ledger::note<test::OrderPlaced>);

  std::string problem;
  EXPECT_TRUE(test::eventually([&] {
    const std::string said = test::message_of<BrokerFailed>([&] { consumer.run_once(); });
    if (said != "nothing was thrown") problem = said;
    return !problem.empty();
  }));

  EXPECT_THAT(problem,
              HasSubstr("reading the JetStream stream 'SHOP' failed for the consumer 'billing'"));
  EXPECT_THAT(problem, HasSubstr("Permissions Violation for Publish to \"" +
                                 denied.substr(0, denied.find('>'))));
}

class DeniedReader : public Access, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Subjects, DeniedReader,
                         ::testing::Values("$JS.API.STREAM.INFO.SHOP",
                                           "$JS.API.CONSUMER.CREATE.SHOP.>",
                                           "$JS.API.CONSUMER.MSG.NEXT.SHOP.>"));

TEST_P(DeniedReader, NamesTheDeniedSubject) {
  const std::string denied = GetParam();
  // Where the name of a consumer isn't in the subject it is one token shorter.
  const std::string shorter = denied.substr(0, denied.find(".>"));
  const NatsServer server{config_denying('"' + denied + "\", \"" + shorter + '"')};
  test::Shop shop{dir.file("shop.db"), server.url()};
  shop.place("1");
  shop.publish();
  nats::StreamReader reader{
      {.url = server.url(),
       .prefix = "shop",
       .stream = "SHOP",
       .credentials = {.user = "denied", .password_file = file("password", "p")}}};

  const std::string problem = test::message_of<BrokerFailed>(
      [&] { reader.read(PartitionId{}, [](const FoundMessage&) {}); });

  EXPECT_THAT(problem, HasSubstr("reading the JetStream stream 'SHOP' failed"));
  EXPECT_THAT(problem, HasSubstr("Permissions Violation for Publish to \"" + shorter));
}

TEST_F(Access, OfAReaderWorksWithoutPermissionToDeleteItsConsumer) {
  const NatsServer server{config_denying("\"$JS.API.CONSUMER.DELETE.>\"")};
  test::Shop shop{dir.file("shop.db"), server.url()};
  shop.place("1");
  shop.publish();
  nats::StreamReader reader{
      {.url = server.url(),
       .prefix = "shop",
       .stream = "SHOP",
       .credentials = {.user = "denied", .password_file = file("password", "p")},
       .publish_timeout = 500ms}};
  int found = 0;

  for (int i = 0; i < 2; ++i) reader.read(PartitionId{}, [&](const FoundMessage&) { ++found; });

  EXPECT_EQ(found, 2);
}

TEST_F(Access, OverTlsWithBothCertificates) {
  make_certificates();
  const std::string in = dir.path().string();
  const NatsServer server{"tls { cert_file: \"" + in + "/server.pem\", key_file: \"" + in +
                          "/server.key\", ca_file: \"" + in + "/ca.pem\", verify: true }"};
  auto with = options(server);
  with.tls = {.ca_file = in + "/ca.pem",
              .certificate_file = in + "/client.pem",
              .key_file = in + "/client.key",
              .host_name = "localhost"};

  const Answer both = connect(with);
  EXPECT_EQ(both.kind, Kind::connected) << both.detail;
  with.tls.host_name = "elsewhere";
  EXPECT_NE(connect(with).kind, Kind::connected);
  with.tls.host_name = "localhost";
  with.tls.certificate_file = with.tls.key_file = "";
  EXPECT_NE(connect(with).kind, Kind::connected);
  with.tls = {};
  EXPECT_NE(connect(with).kind, Kind::connected);
}

TEST_F(Access, ChecksTheNameOfEachServerOfTheList) {
  make_certificates();
  const std::string in = dir.path().string();
  const auto config = [&](const std::string& name) {
    return "tls { cert_file: \"" + in + '/' + name + ".pem\", key_file: \"" + in + '/' + name +
           ".key\" }";
  };
  NatsServer named{config("server")};
  NatsServer numbered{config("numbered")};
  const auto url = [](const std::string& host, const NatsServer& server) {
    return "tls://" + host + ':' + std::to_string(server.port());
  };
  auto with = options(named);
  with.tls = {.ca_file = in + "/ca.pem"};

  with.url = url("127.0.0.1", named) + ',' + url("localhost", numbered);
  EXPECT_EQ(connect(with).kind, Kind::misconfigured) << "each has the other's name";
  with.url = url("localhost", named) + ',' + url("127.0.0.1", numbered);
  named.kill();
  const Answer by_number = connect(with);
  EXPECT_EQ(by_number.kind, Kind::connected) << by_number.detail;
  named.start_again();
  numbered.kill();
  const Answer by_name = connect(with);
  EXPECT_EQ(by_name.kind, Kind::connected) << by_name.detail;
}

TEST_F(Access, RefusesAPlainServerWhereTlsWasAskedFor) {
  const NatsServer server;
  auto with = options(server);
  with.tls = {.required = true};

  const Answer answer = connect(with);

  EXPECT_EQ(answer.kind, Kind::misconfigured);
  EXPECT_THAT(answer.detail, HasSubstr("Secure"));
}

TEST_F(Access, TriesSeveralServers) {
  const NatsServer server;
  auto with = options(server);
  with.url = "nats://127.0.0.1:1, " + server.url();

  EXPECT_EQ(connect(with).kind, Kind::connected);
}

TEST_F(Access, RefusesSecretsThatOthersMayRead) {
  const std::string path = file("secret", canary);
  const auto problem = [&](unsigned mode, const nats::Credentials& credentials,
                           const nats::Tls& tls = {}) {
    std::filesystem::permissions(path, std::filesystem::perms{mode});
    try {
      nats::check(nats::PublisherOptions{.credentials = credentials, .tls = tls});
    } catch (const UsageError& e) {
      return std::string{e.what()};
    }
    return std::string{"none"};
  };
  const nats::Credentials ways[] = {{.user = "shop", .password_file = path},
                                    {.token_file = path},
                                    {.creds_file = path},
                                    {.nkey = "UABC", .nkey_seed_file = path}};

  for (const nats::Credentials& way : ways) {
    EXPECT_EQ(problem(0600, way), "none");
    EXPECT_THAT(problem(0644, way), HasSubstr("others can read the file " + path + " (mode 0644)"));
  }
  EXPECT_THAT(problem(0604, {.token_file = path}),
              HasSubstr("or 0640 if root owns it: chmod 600 "));
  EXPECT_EQ(problem(0640, {.token_file = path}) == "none", geteuid() == 0);
  EXPECT_THAT(problem(0660, {.token_file = path}), HasSubstr("others can read"));
  EXPECT_THAT(problem(0644, {}, {.certificate_file = path, .key_file = path}),
              HasSubstr("tls.key_file: others can read"));
  EXPECT_EQ(problem(0644, {}, {.ca_file = path}), "none") << "it is no secret";
}

TEST_F(Access, RefusesASecretOfMoreThan64KiB) {
  const std::string path = file("secret", std::string(65'536, 'x'));
  try {
    nats::check(nats::PublisherOptions{.credentials = {.token_file = path}});
    FAIL() << "it was taken";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("the file " + path + " is larger than 64 KiB"));
  }
  std::filesystem::resize_file(path, 65'536);
  nats::check(nats::PublisherOptions{.credentials = {.token_file = path}});
}

TEST_F(Access, TakesASecretOfAGroupFromRootAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const std::string path = file("secret", canary);
  ASSERT_EQ(chown(path.c_str(), 65'534, 65'534), 0);
  std::filesystem::permissions(path, std::filesystem::perms{0640});

  try {
    nats::check(nats::PublisherOptions{.credentials = {.token_file = path}});
    FAIL() << "it was taken";
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("(mode 0640)"));
  }
}

TEST_F(Access, RefusesOptionsThatContradictEachOther) {
  const auto problem = [](const nats::Credentials& credentials, const nats::Tls& tls = {},
                          const std::string& url = "nats://127.0.0.1:4222") {
    try {
      nats::check(nats::PublisherOptions{.url = url, .credentials = credentials, .tls = tls});
    } catch (const UsageError& e) {
      return std::string{e.what()};
    }
    return std::string{"none"};
  };
  const std::string secret = file("secret", canary);
  EXPECT_EQ(problem({.token_file = secret}), "none");
  EXPECT_THAT(problem({.user = "shop"}), HasSubstr("user and password_file belong together"));
  EXPECT_THAT(problem({.token_file = secret, .creds_file = secret}), HasSubstr("give one of"));
  EXPECT_THAT(problem({.token_file = "/nowhere"}), HasSubstr("/nowhere can't be read"));
  EXPECT_THAT(problem({}, {.certificate_file = secret}), HasSubstr("belong together"));
  EXPECT_THAT(problem({}, {}, "nats://shop:" + std::string{canary} + "@h:1"),
              ::testing::AllOf(HasSubstr("name files"), Not(HasSubstr(canary))));
}

}  // namespace
}  // namespace stela::access_test

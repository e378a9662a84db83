// The ways to the console: a proxy, a socket that is a file, an export; and what attacks it.
#include "console/sha256.hpp"
#include "support/loopback.hpp"
#include "tool/program.hpp"
#include "tool/served_console.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <deque>

namespace stela::tool::console_ways_test {
namespace {

using test::ask_file;
using test::body_of;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ConsoleBehindProxy : public test::ServedConsole {
 protected:
  void SetUp() override {
    test::write_private(people_file_, "ann view,operate " + sha256("ann's") + "\nbob view\n");
    test::write_private(secret_file_, secret_ + "\n");
    ServedConsole::SetUp();
  }
  std::vector<std::string> options() const {
    return {"--auth", "proxy-header=Remote-User", "--people-file", people_file_,
            "--host", "console.example.org"};
  }
  void start_behind_proxy() {
    auto words = options();
    words.insert(words.end(), {"--proxy-secret-file", secret_file_});
    start(words);
  }
  std::string from_proxy(const std::string& name) const {
    return "Host: console.example.org\r\nStela-Proxy-Secret: " + secret_ +
           "\r\nRemote-User: " + name + "\r\n";
  }
  std::string open(const std::string& fields) const {
    return post_json("/api/v1/session", fields, "{}");
  }

  const std::string people_file_ = folder_.file("people");
  const std::string secret_file_ = folder_.file("secret");
  const std::string secret_ = std::string(64, 's');
};

TEST_F(ConsoleBehindProxy, TakesThePersonsNameFromTheProxy) {
  start_behind_proxy();
  EXPECT_THAT(console_->out(), Not(HasSubstr("#k="))) << "everybody comes by way of the proxy";
  const std::string opened = open(from_proxy("bob") + "Origin: https://console.example.org\r\n");
  EXPECT_THAT(opened, AllOf(HasSubstr(R"("who":"bob")"), HasSubstr("; Secure")));
  const std::string get = "GET /api/v1/s/shop/streams/list";
  const std::string secrets = opened_by(opened).fields();
  EXPECT_THAT(request(get, from_proxy("bob") + secrets), HasSubstr("order-1"));
  EXPECT_THAT(request(get, from_proxy("bob")), HasSubstr(R"("ways":["token","proxy"])"))
      << "another page has no request token";
  EXPECT_THAT(request(get, from_proxy("ann") + secrets), HasSubstr(" 401 "))
      << "the session is another's";
  EXPECT_THAT(request(get, host() + secrets), HasSubstr(" 401 ")) << "not by way of the proxy";
  EXPECT_THAT(open(from_proxy("eve")), HasSubstr("has no grants here"));
  EXPECT_THAT(request(get, from_proxy("bob") + secrets + "Authorization: Bearer ann's\r\n"),
              HasSubstr(" 401 "));
  EXPECT_THAT(request(get, from_proxy("bob") + secrets + "Origin: https://evil.example\r\n"),
              HasSubstr(" 403 "));
  EXPECT_THAT(request(get, bearer("ann's")), HasSubstr("order-1")) << "a program of hers";
}

TEST_F(ConsoleBehindProxy, RefusesANameFromAnywhereElse) {
  start_behind_proxy();
  const std::string name = "Remote-User: ann\r\n";
  const std::string secret = "Stela-Proxy-Secret: " + secret_ + "\r\n";
  for (const std::string& fields :
       {name, std::string{"Remote-User: \r\n"}, std::string{"remote-user: ann\r\n"},
        name + "Stela-Proxy-Secret: " + std::string(64, 't') + "\r\n",
        name + "Stela-Proxy-Secret: \r\n", name + name + secret, name + secret + secret,
        name + "Remote-User: bob\r\n" + secret}) {
    EXPECT_THAT(open(host() + fields), AllOf(HasSubstr(" 403 "), Not(HasSubstr("Set-Cookie"))))
        << fields;
    EXPECT_THAT(request("GET /api/v1/s/shop/streams/list", bearer(token_) + fields),
                AllOf(HasSubstr(" 403 "), Not(HasSubstr("order-1"))))
        << fields;
  }
  EXPECT_THAT(open(from_proxy("ann").substr(sizeof "Host: console.example.org\r\n" - 1) +
                   "Host: evil.example\r\n"),
              HasSubstr(" 421 "));
}

TEST_F(ConsoleBehindProxy, StartsOnlyOnceItIsDecidedWhoMayAsk) {
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"serve", "--db", db_});
    const test::Ran ran = test::run(words);
    EXPECT_EQ(ran.code, 2) << ran.out;
    return ran.err;
  };
  EXPECT_THAT(refusal({"--listen", "0.0.0.0:0"}),
              AllOf(HasSubstr("ssh -L"), HasSubstr("--people-file"), HasSubstr("proxy-header")));
  EXPECT_THAT(refusal({"--auth", "proxy-header=X", "--listen", "0"}), HasSubstr("--people-file"));
  EXPECT_THAT(refusal({"--auth", "proxy-header=X", "--people-file", people_file_, "--listen", "0"}),
              HasSubstr("--proxy-secret-file"));
  EXPECT_THAT(refusal({"--auth", "basic"}), HasSubstr("proxy-header=NAME"));
  EXPECT_THAT(refusal({"--proxy-secret-file", secret_file_}), HasSubstr("--auth"));
  EXPECT_THAT(refusal({"--auth", "proxy-header=X", "--people-file", people_file_,
                       "--proxy-secret-file", secret_file_, "--token-file", secret_file_}),
              HasSubstr("have the same secret"));
  test::Running everywhere{
      {"serve", "--db", db_, "--listen", "0.0.0.0:0", "--people-file", people_file_}};
  EXPECT_TRUE(test::eventually([&] { return everywhere.out().ends_with("/\n"); }));
  EXPECT_THAT(everywhere.out(), AllOf(StartsWith("http://0.0.0.0:"), Not(HasSubstr("#k="))));
}

TEST_F(ConsoleBehindProxy, ListensOnASocketThatIsAFile) {
  const std::string path = folder_.file("console.sock");
  const auto serve = [&](std::vector<std::string> more) {
    auto words = options();
    words.insert(words.begin(), {"serve", "--db", "shop=" + db_, "--listen", "unix:" + path});
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<test::Running>(words);
  };
  const auto healthy = [&] {
    return ask_file(path, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .ends_with("ok\n");
  };
  const auto mode = [&] {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return status.st_mode & 0777U;
  };
  auto server = serve({});
  ASSERT_TRUE(test::eventually(healthy)) << server->err();
  EXPECT_EQ(mode(), 0600U);
  EXPECT_THAT(ask_file(path,
                       "POST /api/v1/session HTTP/1.1\r\nHost: console.example.org\r\n"
                       "Remote-User: ann\r\nContent-Type: application/json\r\n"
                       "Connection: close\r\nContent-Length: 2\r\n\r\n{}"),
              HasSubstr(R"("who":"ann")"));
  auto other = serve({});
  EXPECT_EQ(other->wait(), 1);
  EXPECT_THAT(other->err(), HasSubstr("a server listens there"));
  EXPECT_TRUE(healthy());

  server->signal(SIGKILL);
  server->wait();
  EXPECT_TRUE(std::filesystem::exists(path));
  server = serve({"--proxy-secret-file", secret_file_});
  ASSERT_TRUE(test::eventually(healthy)) << server->err();
  EXPECT_EQ(mode(), 0660U) << "the secret tells the proxy from others of the group";
  EXPECT_THAT(ask_file(path,
                       "GET /healthz HTTP/1.1\r\nHost: localhost\r\nRemote-User: ann\r\n"
                       "Connection: close\r\n\r\n"),
              HasSubstr(" 403 "));
  server->signal(SIGTERM);
  EXPECT_EQ(server->wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream{path} << "mine\n";
  server = serve({});
  EXPECT_EQ(server->wait(), 1);
  EXPECT_EQ(test::text_of(path), "mine\n");
}

class ConsoleUnderAttack : public test::ServedConsole {};

TEST_F(ConsoleUnderAttack, AnswersWhatMakesNoSenseWithAStatus) {
  const std::string get = "GET /healthz HTTP/1.1\r\n" + host();
  for (const std::string& request :
       {std::string{"\r\n\r\n"}, std::string{"GET\r\n\r\n"}, std::string{"\x16\x03\x01\r\n\r\n"},
        std::string{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}, get + "X\r\n\r\n", get + "X : y\r\n\r\n",
        get + "X: a\r\n b\r\n\r\n", get + "X: a\nY: b\r\n\r\n",
        get + "X: " + std::string(1, '\0') + "\r\n\r\n", "GET /a b HTTP/1.1\r\n" + host() + "\r\n",
        get + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", get + "Content-Length: +1\r\n\r\n",
        get + "Content-Length: 0x1\r\n\r\n", get + "Content-Length: 99999999999999999999\r\n\r\n",
        get + "Transfer-Encoding: chunked, identity\r\n\r\n",
        get + "Transfer-Encoding: xchunked\r\n\r\n",
        get + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
    EXPECT_THAT(test::ask(port_, request),
                AnyOf(StartsWith("HTTP/1.1 400 "), StartsWith("HTTP/1.1 411 "),
                      StartsWith("HTTP/1.1 405 ")))
        << request;
  }
  EXPECT_THAT(test::ask_and_end(port_, "GET / HT"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(test::ask(port_, get + "X: " + std::string(9'000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(test::ask(port_, std::string(200'000, 'x')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(test::ask(port_, get + "\r\n" + "GET"), Not(HasSubstr("500")));
}

/// What follows a request that is refused is no request of its own.
TEST_F(ConsoleUnderAttack, ReadsNoSecondRequestOutOfABody) {
  const std::string inner = "GET /healthz HTTP/1.1\r\n" + host() + "\r\n";
  for (const std::string fields :
       {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding:\tchunked\r\n", "Content-Length: 0\r\nContent-Length: 40\r\n", ""}) {
    const std::string answer = test::ask(port_, "POST /api/v1/session HTTP/1.1\r\n" + host() +
                                                    "Content-Type: application/json\r\n" + fields +
                                                    "\r\n0\r\n\r\n" + inner);
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 4"), Not(HasSubstr("200 OK")))) << fields;
  }
}

TEST_F(ConsoleUnderAttack, AnswersNoNameThatOnlyLooksLikeItsOwn) {
  const std::string port = ":" + std::to_string(port_);
  for (const std::string& name : std::vector<std::string>{
           "127.0.0.1.evil.example" + port, "evil.example@127.0.0.1" + port, "localhost." + port,
           "LOCALHOST.evil.example" + port, "127.1" + port, "2130706433" + port, "[::1]",
           "[::ffff:127.0.0.1]" + port, "127.0.0.1:1", "127.0.0.1" + port + "0", " ", "*"}) {
    EXPECT_THAT(request("GET /api/v1/s/shop/streams/list",
                        "Host: " + name + "\r\nAuthorization: Bearer " + token_ + "\r\n"),
                AllOf(Not(HasSubstr("order-1")), HasSubstr("421")))
        << name;
  }
  const std::string authorized = bearer(token_);
  for (const std::string target :
       {"http://evil.example/api/v1/s/shop/streams/list",
        "//evil.example/api/v1/s/shop/streams/list", "*", "/api/v1/s/shop/../shop/streams/list",
        "/api/v1/s/shop%2fstreams/list", "/api/v1/s/shop/streams%2flist",
        "/api/v1/s/..%2fshop/check", "/api/v1/s/shop/streams/show/%00"}) {
    EXPECT_THAT(request("GET " + target, authorized), Not(HasSubstr("\"stream\":\"order-1\"")))
        << target;
  }
}

TEST_F(ConsoleUnderAttack, ChangesNothingByAGetOrAForm) {
  start({"--allow-actions"});
  const Browser browser = visit();
  const std::string secrets = host() + browser.fields();
  const std::string body = R"({"command":"timers hold"})";
  EXPECT_THAT(request("GET /api/v1/s/shop/jobs?command=timers+hold", secrets),
              HasSubstr(R"({"data":[]})"));
  EXPECT_THAT(request("GET /api/v1/s/shop/timers/hold", secrets), HasSubstr(" 404 "));
  for (const std::string type : {"text/plain", "application/x-www-form-urlencoded",
                                 "multipart/form-data", "application/jsonp"}) {
    EXPECT_THAT(
        test::ask(port_, "POST /api/v1/s/shop/jobs HTTP/1.1\r\n" + secrets +
                             "Content-Type: " + type + "\r\nConnection: close\r\nContent-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body),
        HasSubstr(" 415 "))
        << type;
  }
  for (const std::string fields : {"Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: none\r\n",
                                   "Origin: null\r\n", "Origin: https://127.0.0.1\r\n"}) {
    EXPECT_THAT(post_json("/api/v1/s/shop/jobs", secrets + fields, body), HasSubstr(" 403 "));
  }
  for (const std::string method : {"PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"}) {
    EXPECT_THAT(request(method + " /api/v1/s/shop/jobs", secrets), HasSubstr(" 405 ")) << method;
  }
  EXPECT_THAT(request("GET /api/v1/s/shop/jobs", secrets), HasSubstr(R"({"data":[]})"));
}

TEST_F(ConsoleUnderAttack, TakesNoSessionOfAConsoleOnAnotherPort) {
  const Browser browser = visit();
  const std::string get = "GET /api/v1/s/shop/streams/list";
  EXPECT_THAT(request(get, host() + browser.fields()), HasSubstr("order-1"));
  start();
  EXPECT_THAT(request(get, host() + browser.fields()), HasSubstr(" 401 "));
}

/// Each is open until 500 later ones are.
TEST_F(ConsoleUnderAttack, AnswersWhileTenThousandConnectionsSayNothing) {
  std::deque<int> open;
  const sockaddr_in address = test::loopback(port_);
  std::chrono::milliseconds slowest{0};
  for (int i = 0; i < 10'000; ++i) {
    const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    send(file, "GET /", 5, MSG_NOSIGNAL);
    open.push_back(file);
    if (open.size() > 500) {
      close(open.front());
      open.pop_front();
    }
    if (i % 1'000 != 999) continue;
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_THAT(request("GET /healthz", host()), HasSubstr("200 OK"));
    slowest = std::max(slowest, std::chrono::duration_cast<std::chrono::milliseconds>(
                                    std::chrono::steady_clock::now() - begun));
  }
  for (const int file : open) close(file);
  RecordProperty("slowest_ms", static_cast<int>(slowest.count()));
  EXPECT_LT(slowest, std::chrono::seconds{2});
}

TEST_F(ConsoleUnderAttack, SendsTextOfTheDatabaseAsText) {
  test::run_well({"events", "append", "--db", db_, "--stdin"},
                 {.input = R"({"stream":"x-<script>alert(1)</script>","type":"a.b","data":)"
                           R"({"t":"</script>\u2028\u001b[2J\u0000"}})"});
  const std::string answer = data("events/list?newest-first=1&limit=1");
  EXPECT_THAT(answer, AllOf(HasSubstr("Content-Type: application/json"), HasSubstr("nosniff"),
                            HasSubstr("default-src 'none'"), Not(HasSubstr("\x1b")),
                            HasSubstr("<script>")));
  EXPECT_THAT(data("events/show/<img src=x onerror=1>"), HasSubstr("HTTP/1.1 400"));
}

class ConsoleOfAnExport : public test::ServedConsole {
 protected:
  void serve(const std::string& file) {
    const std::string folder = folder_.file("tmp");
    std::filesystem::create_directory(folder);
    console_.reset();
    std::filesystem::remove(port_file_);
    console_.emplace(
        std::vector<std::string>{"serve", "--export", file, "--listen", "0", "--port-file",
                                 port_file_, "--token-file", token_file_},
        test::RunOptions{.environment = {{"TMPDIR", folder}}});
    ASSERT_TRUE(test::eventually([&] { return test::text_of(port_file_).ends_with('\n'); }))
        << console_->err();
    port_ = static_cast<std::uint16_t>(std::stoi(test::text_of(port_file_)));
  }
  int copies() const {
    int found = 0;
    for ([[maybe_unused]] const auto& one :
         std::filesystem::directory_iterator{folder_.file("tmp")}) {
      ++found;
    }
    return found;
  }
};

TEST_F(ConsoleOfAnExport, IsNoneOfAFileThatIsCutOff) {
  const std::string file = folder_.file("shop.jsonl");
  test::run_well({"export", "--db", db_, file});
  const std::string text = test::text_of(file);
  std::ofstream{file} << text.substr(0, text.size() / 2);

  const test::Ran ran = test::run({"serve", "--export", file, "--listen", "0"});

  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("shop.jsonl' isn't a whole export: line "),
                             Not(HasSubstr("the store"))));
}

TEST_F(ConsoleOfAnExport, IsThatOfItsLastEvent) {
  const std::string file = folder_.file("shop.jsonl");
  test::run_well({"export", "--db", db_, file});
  const std::string last = test::member(
      test::run_well({"events", "list", "--db", db_, "--json", "--newest-first", "--limit", "1"}),
      "recorded_at");
  serve(file);
  EXPECT_THAT(
      data("streams/list"),
      AllOf(HasSubstr("order-1"), HasSubstr(R"("at":")" + last + R"(","export":"shop.jsonl")")));
  EXPECT_THAT(request("GET /api/v1/session", bearer(token_)),
              AllOf(HasSubstr(R"("export":{"file":"shop.jsonl","last_event_at":")" + last),
                    HasSubstr(R"("acts":false)")));
  EXPECT_THAT(data("check"), Not(HasSubstr("timers_held")));
  EXPECT_EQ(copies(), 1);
  console_->signal(SIGKILL);
  console_->wait();
  EXPECT_EQ(copies(), 1);
  serve(file);
  EXPECT_EQ(copies(), 1) << "that of the dead one is gone";
  console_->signal(SIGTERM);
  EXPECT_EQ(console_->wait(), 0);
  EXPECT_EQ(copies(), 0);
  EXPECT_EQ(test::run({"serve", "--export", file, "--db", db_}).code, 2);
  EXPECT_EQ(test::run({"serve", "--export", file, "--allow-actions"}).code, 2);
  EXPECT_EQ(test::run({"serve", "--export", folder_.file("none")}).code, 3);
  std::ofstream{file} << "{}\n";
  EXPECT_EQ(test::run({"serve", "--export", file}).code, 1);
}

class ConsoleWithLongJobs : public test::ServedConsole {
 protected:
  void fill() override {
    std::string lines;
    for (int i = 0; i < 3'000; ++i) {
      lines += R"({"stream":"a-)" + std::to_string(i) + R"(","type":"a.b","data":{}})" + "\n";
    }
    test::run_well({"migrate", "--db", db_});
    test::run_well({"events", "append", "--db", db_, "--stdin"}, {.input = lines});
  }
  std::string job(const std::string& number) {
    return body_of(request("GET /api/v1/s/shop/jobs/" + number, secrets_));
  }
  std::string running(const std::string& body) {
    const std::string number =
        test::member(body_of(post_json("/api/v1/s/shop/jobs", secrets_, body)), "job");
    EXPECT_TRUE(test::eventually([&] { return test::member(job(number), "state") == "asks"; }));
    post_json("/api/v1/s/shop/jobs/" + number + "/confirm", secrets_, "{}");
    return number;
  }
  std::string secrets_;
};

TEST_F(ConsoleWithLongJobs, SaysHowFarItHasComeAndEndsItAtASafePoint) {
  start({"--allow-actions"});
  secrets_ = host() + visit().fields();
  const std::string whole = running(R"({"command":"verify"})");
  EXPECT_TRUE(test::eventually([&] { return test::member(job(whole), "state") == "done"; }))
      << job(whole);
  EXPECT_THAT(job(whole),
              AllOf(HasSubstr(R"("progress":{"stage":")"), HasSubstr(R"("events":3000)")));
  // One that is faster than the request that cancels it is done.
  EXPECT_TRUE(test::eventually([&] {
    const std::string cut = running(R"({"command":"verify","options":{"thorough":""}})");
    post_json("/api/v1/s/shop/jobs/" + cut + "/cancel", secrets_, "{}");
    EXPECT_TRUE(test::eventually([&] {
      const std::string state = test::member(job(cut), "state");
      return state == "cancelled" || state == "done";
    })) << job(cut);
    return job(cut).find("what was done until then stays") != std::string::npos;
  }));
  running(R"({"command":"verify"})");
  console_->signal(SIGTERM);
  EXPECT_EQ(console_->wait(), 0) << "it waits for no long job";
}

}  // namespace
}  // namespace stela::tool::console_ways_test

// The console as a browser and as a program ask it.
#include "console/sessions.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/http.hpp"
#include "tool/program.hpp"
#include "tool/served_console.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/codec/detail/json_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace stela::tool::console_test {
namespace {

using namespace std::chrono_literals;
using test::ask;
using test::body_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ConsoleSessions, LinkOpensOneSessionForFiveMinutes) {
  Sessions sessions;
  const auto now = Sessions::Clock::now();
  const std::string first = sessions.new_link(now);
  const std::string second = sessions.new_link(now);
  EXPECT_FALSE(sessions.open(first, now)) << "a newer link takes its place";
  EXPECT_FALSE(sessions.open("", now));
  EXPECT_FALSE(sessions.open(second, now + 5min));
  EXPECT_TRUE(sessions.open(second, now + 4min));
  EXPECT_FALSE(sessions.open(second, now + 4min)) << "it was used";
}

TEST(ConsoleSessions, EndsAfterTwelveUnusedHours) {
  Sessions sessions;
  const auto now = Sessions::Clock::now();
  const auto session = sessions.open(sessions.new_link(now), now);
  ASSERT_TRUE(session);
  EXPECT_EQ(sessions.token_of(session->id, now + 11h), session->token);
  EXPECT_EQ(sessions.token_of(session->id, now + 22h), session->token);
  EXPECT_FALSE(sessions.token_of(session->id, now + 35h));
  EXPECT_FALSE(sessions.token_of("", now));
}

TEST(ConsoleSessions, KeepsSixtyFour) {
  Sessions sessions;
  const auto now = Sessions::Clock::now();
  const auto first = sessions.open(sessions.new_link(now), now);
  for (int i = 1; i <= 64; ++i) {
    ASSERT_TRUE(sessions.open(sessions.new_link(now + 1s), now + 1s));
  }
  EXPECT_FALSE(sessions.token_of(first->id, now + 2s));
}

class Console : public test::ServedConsole {};

TEST_F(Console, GivesWhatTheCommandsPrint) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"events", "show", "1"},
                                             {"streams", "show", "order-1"},
                                             {"timers", "list"},
                                             {"tags", "types"},
                                             {"projections", "list"},
                                             {"log"}}) {
    std::vector<std::string> typed = words;
    typed.insert(typed.end(), {"--db", db_, "--json"});
    std::string path;
    for (const std::string& word : words) path += (path.empty() ? "" : "/") + word;
    const std::string answer = data(path);
    EXPECT_THAT(answer, HasSubstr("200 OK")) << path;
    for (const std::string& line : test::lines_of(test::run_well(typed))) {
      EXPECT_THAT(answer, HasSubstr(line)) << path;
    }
  }
  EXPECT_THAT(data("events/list?limit=1&newest-first=1"),
              AllOf(HasSubstr(R"("as_of":{"sequence":)"), HasSubstr(R"("data":[{"sequence":)"),
                    HasSubstr(R"("more":{"option":"after","value":")")));
  EXPECT_THAT(data("events/list"), HasSubstr(R"("more":null)"));
}

TEST_F(Console, NamesWhatItDoesntUnderstand) {
  EXPECT_THAT(data("events/show/4711000"),
              AllOf(HasSubstr("404 Not Found"), HasSubstr("there is no event 4711000")));
  EXPECT_THAT(data("migrate"), HasSubstr("404 Not Found")) << "it only reads";
  EXPECT_THAT(data("outbox/discard/1"), HasSubstr("404 Not Found"));
  EXPECT_THAT(data("events/show"), HasSubstr("400 Bad Request"));
  EXPECT_THAT(data("events/show/1/2"), HasSubstr("400 Bad Request"));
  EXPECT_THAT(data("streams/show/--help"), HasSubstr("400 Bad Request"));
  EXPECT_THAT(data("streams/show/%zz"), HasSubstr("400 Bad Request"));
  EXPECT_THAT(data("events/list?type=none&look-further=1"), HasSubstr("400 Bad Request"));
  for (const std::string option : {"db=/etc/passwd", "nats=nats://127.0.0.1:1", "config=x",
                                   "set=db=x", "watch=1s", "nothing=1", "json=1"}) {
    EXPECT_THAT(data("outbox/status?" + option), HasSubstr("400 Bad Request")) << option;
  }
}

TEST_F(Console, AnswersWhoHasBothSecretsOfASession) {
  const Browser browser = visit();
  ASSERT_FALSE(browser.cookie.empty());
  EXPECT_TRUE(visit().cookie.empty()) << "the link was used";
  const std::string cookie = "Cookie: " + browser.cookie + "\r\n";
  const std::string token = "Stela-Token: " + browser.token + "\r\n";
  const std::string get = "GET /api/v1/s/shop/streams/list";
  EXPECT_THAT(request(get, host() + cookie + token), HasSubstr("order-1"));
  EXPECT_THAT(request("GET /api/v1/session", host() + cookie + token),
              HasSubstr(R"("stores":["shop"])"));
  EXPECT_THAT(request("GET /api/v1/session", host() + cookie),
              AllOf(HasSubstr("401"), Not(HasSubstr(browser.token))))
      << "a cookie goes to every port of this host";
  const std::vector<std::pair<std::string, std::string>> refused{
      {"401", ""},
      {"401", cookie},
      {"401", token},
      {"401", cookie + "Stela-Token: " + std::string(64, '0') + "\r\n"},
      {"401", cookie + token + token},
      {"401", cookie + cookie + token},
      {"401", "Authorization: Bearer " + std::string(64, 'b') + "\r\n" + cookie + token},
      {"403", cookie + token + "Origin: null\r\n"},
      {"403", cookie + token + "Origin: http://evil.example\r\n"},
      {"403", cookie + token + "Sec-Fetch-Site: cross-site\r\n"},
      {"403", cookie + token + "Sec-Fetch-Site: same-site\r\n"},
      {"403", "Authorization: Bearer " + token_ + "\r\nOrigin: http://evil.example\r\n"}};
  for (const auto& [status, fields] : refused) {
    EXPECT_THAT(request(get, host() + fields),
                AllOf(HasSubstr("HTTP/1.1 " + status), Not(HasSubstr("order-1"))))
        << fields;
  }
}

TEST_F(Console, AnswersToItsOwnNameOnly) {
  const std::string right = "127.0.0.1:" + std::to_string(port_);
  for (const std::string& fields :
       {std::string{"Host: evil.example\r\n"},
        "Host: evil.example:" + std::to_string(port_) + "\r\n", std::string{"Host: 127.0.0.1\r\n"},
        std::string{}, "Host: " + right + "\r\nHost: " + right + "\r\n"}) {
    EXPECT_THAT(request("GET /", fields), HasSubstr("421")) << fields;
    EXPECT_THAT(request("GET /api/v1/s/shop/streams/list",
                        fields + "Authorization: Bearer " + token_ + "\r\n"),
                Not(HasSubstr("order-1")))
        << fields;
  }
  EXPECT_THAT(request("GET /healthz", "Host: localhost:" + std::to_string(port_) + "\r\n"),
              HasSubstr("ok"));
}

TEST_F(Console, ThePageHoldsNoDataAndMayLoadNothingElse) {
  for (const std::string path : {"/", "/s/shop/", "/s/shop/stream/order-1", "/../../etc/passwd"}) {
    EXPECT_THAT(
        request("GET " + path, host()),
        AllOf(HasSubstr("200 OK"), HasSubstr("<base href=\"/\">"), HasSubstr("default-src 'none'"),
              HasSubstr("nosniff"), Not(HasSubstr("order-1")), Not(HasSubstr("root:"))))
        << path;
  }
  EXPECT_THAT(request("POST /", host() + "Content-Length: 0\r\n"), HasSubstr("405"));
}

TEST_F(Console, MakesOneOverviewForAllWhoLook) {
  const std::string authorization = host() + "Authorization: Bearer " + token_ + "\r\n";
  const std::string path = "GET /api/v1/s/shop/overview";
  std::string answer = request(path, authorization);
  EXPECT_THAT(answer, AllOf(HasSubstr(R"("check":{"as_of":)"), HasSubstr(R"("why":[)"),
                            HasSubstr(R"("projections":[)"), HasSubstr(R"("history":[)")));
  // A snapshot lasts a second: on a slow machine this may take a few.
  EXPECT_TRUE(test::eventually([&] {
    const std::size_t tag = answer.find("ETag: ") + 6;
    const std::string known = answer.substr(tag, answer.find("\r\n", tag) - tag);
    answer = request(path, authorization + "If-None-Match: " + known + "\r\n");
    return answer.find("304 Not Modified") != std::string::npos && body_of(answer).empty();
  }));
}

TEST_F(Console, SaysThatTheDatabaseIsGone) {
  std::filesystem::rename(db_, db_ + ".moved");
  EXPECT_THAT(data("events/show/1"), HasSubstr("404 Not Found"));
  EXPECT_TRUE(test::eventually(
      [&] { return data("overview").find("there is no database at") != std::string::npos; }));
}

TEST_F(Console, DescribesItselfToPrograms) {
  const std::string answer =
      request("GET /api/v1/openapi.json", host() + "Authorization: Bearer " + token_ + "\r\n");
  EXPECT_THAT(answer, AllOf(HasSubstr(R"("/s/{store}/events/show/{event}":{"get":)"),
                            HasSubstr(R"("/s/{store}/why":{"get":)"),
                            HasSubstr(R"("/s/{store}/why/{subject}":{"get":)"),
                            HasSubstr(R"({"name":"newest-first","in":"query")"),
                            Not(HasSubstr(R"("name":"db")"))));
  json::Reader reader{body_of(answer)};
  reader.open_object();
  ASSERT_TRUE(reader.select("paths"));
  int paths = 0;
  reader.open_object();
  for (std::string path; reader.next_member(path);) ++paths;
  EXPECT_GT(paths, 36);
}

TEST_F(Console, FindsWhatAWordMeans) {
  EXPECT_THAT(data("find?q=1"), HasSubstr(R"({"kind":"event","name":"1"})"));
  EXPECT_THAT(data("find?q=order-1"), HasSubstr(R"("kind":"stream")"));
  EXPECT_THAT(data("find?q=counting"), HasSubstr(R"("kind":"projector")"));
  EXPECT_THAT(data("find?q=payment_deadline"), HasSubstr(R"("kind":"process")"));
  EXPECT_THAT(data("find?q=%3Cscript%3E"), HasSubstr(R"({"kind":null,"name":"<script>"})"));
  EXPECT_THAT(data("find"), HasSubstr("400"));
}

TEST_F(Console, EndsWhenItIsToldTo) {
  console_->signal(SIGTERM);
  EXPECT_EQ(console_->wait(), 0);
}

TEST_F(Console, TellsTheBrokersStreamFromAnEvents) {
  start({"--stream", "SHOP", "--prefix", "shop"});
  EXPECT_THAT(data("events/list"), HasSubstr(R"("data":[{"sequence":1)"));
  EXPECT_THAT(data("events/list?stream=order-1"), HasSubstr(R"("stream":"order-1")"));
  EXPECT_THAT(data("outbox/list?state=parked"), HasSubstr("200 OK"));
  EXPECT_THAT(data("check"), HasSubstr("200 OK"));
}

TEST_F(Console, LivesUnderAPath) {
  start({"--base-path", "/stela/", "--environment", "production"});
  EXPECT_THAT(console_->out(), HasSubstr("/stela/#k="));
  EXPECT_THAT(request("GET /stela/s/shop/", host()), HasSubstr("<base href=\"/stela/\">"));
  EXPECT_THAT(request("GET /", host()), HasSubstr("404"));
  EXPECT_THAT(request("GET /stela/api/v1/s/shop/events/show/1",
                      host() + "Authorization: Bearer " + token_ + "\r\n"),
              HasSubstr("200 OK"));
}

TEST_F(Console, RefusesToStartWhereItWouldBeOpenToOthers) {
  const auto refusal = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"serve", "--db", db_};
    words.insert(words.end(), more.begin(), more.end());
    const test::Ran ran = test::run(words);
    EXPECT_EQ(ran.code, 2) << ran.out;
    return ran.err;
  };
  EXPECT_THAT(refusal({"--listen", "0.0.0.0:0"}), HasSubstr("isn't loopback"));
  EXPECT_THAT(refusal({"--listen", "unix:" + folder_.file("socket")}), HasSubstr("no link leads"));
  EXPECT_THAT(refusal({"--listen", "unix:"}), HasSubstr("needs a path"));
  EXPECT_THAT(refusal({"--auth", "proxy-header=Host"}), HasSubstr("something else"));
  EXPECT_THAT(refusal({"--db", db_}), HasSubstr("two databases are called 'shop'"));
  EXPECT_THAT(refusal({"--base-path", "stela"}), HasSubstr("--base-path"));
  EXPECT_THAT(refusal({"--base-path="}), HasSubstr("--base-path"));
  const std::string weak = folder_.file("weak");
  std::ofstream{weak} << "short\n";
  EXPECT_THAT(refusal({"--token-file", weak}), HasSubstr("others may read"));
  std::filesystem::permissions(weak, std::filesystem::perms::owner_read);
  EXPECT_THAT(refusal({"--token-file", weak}), HasSubstr("under 32 characters"));
  EXPECT_EQ(test::run({"serve", "--db", folder_.file("none.db")}).code, 3);
}

TEST_F(Console, AnswersRequestsOfAConnectionInTurn) {
  const std::string one = "GET /healthz HTTP/1.1\r\n" + host() + "\r\n";
  const std::string last = "GET /healthz HTTP/1.1\r\n" + host() + "Connection: close\r\n\r\n";
  const std::string answers = ask(port_, one + one + last);
  int found = 0;
  for (std::size_t at = 0; (at = answers.find("\r\n\r\nok\n", at)) != std::string::npos; ++at) {
    ++found;
  }
  EXPECT_EQ(found, 3) << answers;
}

TEST_F(Console, RefusesRequestsThatOthersWouldReadOtherwise) {
  const std::string post = "POST /api/v1/session HTTP/1.1\r\n" + host();
  EXPECT_THAT(ask(port_, post + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), HasSubstr("411"));
  EXPECT_THAT(ask(port_, post + "\r\n"), HasSubstr("411"));
  EXPECT_THAT(ask(port_, post + "Content-Length: 70000\r\n\r\n"), HasSubstr("413"));
  for (const std::string fields :
       {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n", "Content-Length: -1\r\n", "Content-Length: 5x\r\n",
        "Content-Length : 5\r\n", "X: a\r\n b\r\n", "X: a\nY: b\r\n"}) {
    EXPECT_THAT(ask(port_, post + fields + "\r\nhello"), Not(HasSubstr("HTTP/1.1 2"))) << fields;
  }
  EXPECT_THAT(ask(port_, "GET / HTTP/1.1\r\n" + host() + "Content-Length: 5\r\n\r\nhello"),
              HasSubstr("400"));
  EXPECT_THAT(request("GET /healthz", host()), HasSubstr("200 OK")) << "it lives";
}

/// What it answers to these lines.
std::string answers_to_agent(const std::string& db, const std::string& lines,
                             const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"mcp", "--db", db};
  words.insert(words.end(), more.begin(), more.end());
  return test::run_well(words, {.input = lines});
}

std::string asked_by_agent(const std::string& tool, const std::string& arguments) {
  return R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":")" + tool +
         R"(","arguments":)" + arguments + "}}\n";
}

TEST_F(Console, AnswersAgents) {
  const std::string hello = answers_to_agent(
      db_,
      R"({"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-03-26"}})"
      "\n"
      R"({"jsonrpc":"2.0","method":"notifications/initialized"})"
      "\n"
      R"({"jsonrpc":"2.0","id":2,"method":"tools/list"})"
      "\n");
  const auto lines = test::lines_of(hello);
  ASSERT_EQ(lines.size(), 2U) << hello;
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr(R"("id":"a")"), HasSubstr(R"("protocolVersion":"2025-03-26")")));
  EXPECT_THAT(lines[1],
              AllOf(HasSubstr(R"("name":"events_show")"), HasSubstr(R"("required":["event"])"),
                    HasSubstr(R"("name":"preview_outbox_retry")"), Not(HasSubstr("\"yes\""))));
  const std::string show = asked_by_agent("events_show", R"({"event":1})");
  EXPECT_THAT(answers_to_agent(db_, show),
              AllOf(HasSubstr(R"(\"stream\":\"order-1\")"), HasSubstr(R"(\"payload\":null)"),
                    Not(HasSubstr("ann"))));
  EXPECT_THAT(answers_to_agent(db_, show, {"--payloads"}), HasSubstr("ann"));
  EXPECT_THAT(answers_to_agent(db_, asked_by_agent("events_list", R"({"limit":"1"})")),
              HasSubstr(R"("isError":false)"));
}

TEST_F(Console, ChangesNothingForAgents) {
  EXPECT_THAT(answers_to_agent(db_, asked_by_agent("preview_outbox_retry", R"({"all":true})")),
              AllOf(HasSubstr("stela outbox retry --all --db"), HasSubstr(R"(\"dry_run\":true)")));
  EXPECT_EQ(test::member(test::run_well({"outbox", "show", "1", "--db", db_, "--json"}), "state"),
            "parked");
  EXPECT_THAT(answers_to_agent(db_, asked_by_agent("outbox_retry", R"({"all":true})")),
              HasSubstr(R"("error":{"code":-32602)"));
  EXPECT_THAT(answers_to_agent(db_, asked_by_agent("events_show", R"({"event":"x","db":"y"})")),
              HasSubstr(R"("isError":true)"));
  EXPECT_THAT(answers_to_agent(db_, asked_by_agent("events_show", "{}")),
              HasSubstr(R"("isError":true)"));
  EXPECT_THAT(answers_to_agent(db_, "{\n[]\n"), HasSubstr(R"("error":{"code":-32700)"));
  EXPECT_THAT(answers_to_agent(db_, R"({"jsonrpc":"2.0","id":1,"method":"x"})"
                                    "\n"),
              HasSubstr("-32601"));
}

/// A console that may act, and a browser that has a session.
class ActingConsole : public Console {
 protected:
  void SetUp() override {
    Console::SetUp();
    start({"--allow-actions"});
    browser_ = visit();
    ASSERT_FALSE(browser_.cookie.empty());
  }

  std::string secrets() const {
    return host() + "Cookie: " + browser_.cookie + "\r\nStela-Token: " + browser_.token + "\r\n";
  }
  std::string post(const std::string& path, const std::string& body) const {
    return ask(port_,
               "POST /api/v1/s/shop/" + path + " HTTP/1.1\r\n" + secrets() +
                   "Content-Type: application/json\r\nConnection: close\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  std::string job(const std::string& number) const {
    return body_of(request("GET /api/v1/s/shop/jobs/" + number, secrets()));
  }
  bool becomes(const std::string& number, const std::string& state) const {
    return test::eventually([&] { return test::member(job(number), "state") == state; });
  }
  /// The number of a new job that asks.
  std::string asking(const std::string& body) {
    const std::string answer = post("jobs", body);
    EXPECT_THAT(answer, HasSubstr("201 Created")) << body;
    const std::string number = test::member(body_of(answer), "job");
    EXPECT_TRUE(becomes(number, "asks")) << job(number);
    return number;
  }
  std::string state_of_first() const {
    return test::member(test::run_well({"outbox", "show", "1", "--db", db_, "--json"}), "state");
  }

  Browser browser_;
};

TEST_F(ActingConsole, DoesWhatItAskedAboutOnceItIsConfirmed) {
  EXPECT_THAT(request("GET /api/v1/session", secrets()), HasSubstr(R"("can_act":true)"));
  const std::string number = asking(R"({"command":"outbox retry","options":{"all":""}})");
  EXPECT_THAT(job(number), HasSubstr(R"("command":"outbox retry --all")"));
  EXPECT_THAT(test::member(job(number), "question"), ::testing::MatchesRegex("Retry .* of .*"));
  EXPECT_EQ(state_of_first(), "parked");
  EXPECT_THAT(post("jobs/" + number + "/confirm", "{}"), HasSubstr("200 OK"));
  EXPECT_TRUE(becomes(number, "done")) << job(number);
  EXPECT_THAT(job(number), HasSubstr(R"("printed":[{"messages":)"));
  EXPECT_NE(state_of_first(), "parked");
  EXPECT_THAT(test::run_well({"log", "--db", db_}), HasSubstr("(console)"));
  EXPECT_THAT(post("jobs/" + number + "/confirm", "{}"), HasSubstr("409 Conflict"));
}

TEST_F(ActingConsole, LeavesAloneWhatChangedSinceItAsked) {
  const std::string number = asking(R"({"command":"outbox retry","options":{"all":""}})");
  test::run_well({"outbox", "retry", "--all", "--db", db_});
  post("jobs/" + number + "/confirm", "{}");
  EXPECT_TRUE(becomes(number, "done")) << job(number);
  EXPECT_THAT(job(number), HasSubstr(R"("messages":0)"));
}

TEST_F(ActingConsole, DoesNothingThatIsCancelled) {
  const std::string retry = asking(R"({"command":"outbox retry","options":{"all":""}})");
  const std::string hold = asking(R"({"command":"timers hold","options":{"why":"moving"}})");
  EXPECT_THAT(job(hold), HasSubstr("Run 'timers hold --why=moving'?"));
  for (const std::string& number : {retry, hold}) {
    post("jobs/" + number + "/cancel", "{}");
    EXPECT_TRUE(becomes(number, "cancelled")) << job(number);
  }
  EXPECT_EQ(state_of_first(), "parked");
  EXPECT_THAT(test::run({"timers", "resume", "--db", db_, "--dry-run"}).out,
              HasSubstr("moving house"))
      << "only the hold that was there";
  EXPECT_THAT(test::run({"timers", "resume", "--db", db_, "--dry-run"}).out,
              Not(HasSubstr("moving\n")));
}

TEST_F(ActingConsole, SaysWhatACommandCantDo) {
  const std::string number = asking(R"({"command":"projections retry","operands":["nothing"]})");
  post("jobs/" + number + "/confirm", "{}");
  EXPECT_TRUE(becomes(number, "failed")) << job(number);
  EXPECT_THAT(test::member(job(number), "error"), HasSubstr("nothing"));
}

TEST_F(ActingConsole, LetsNobodyElseAct) {
  const std::string body = R"({"command":"outbox retry","options":{"all":""}})";
  const auto post_with = [&](const std::string& fields) {
    return ask(port_,
               "POST /api/v1/s/shop/jobs HTTP/1.1\r\n" + fields +
                   "Content-Type: application/json\r\nConnection: close\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\n\r\n" + body);
  };
  EXPECT_THAT(post_with(host() + "Authorization: Bearer " + token_ + "\r\n"), HasSubstr("403"));
  EXPECT_THAT(post_with(host() + "Cookie: " + browser_.cookie + "\r\n"), HasSubstr("401"));
  EXPECT_THAT(post_with(secrets() + "Origin: null\r\n"), HasSubstr("403"));
  EXPECT_THAT(request("GET /api/v1/s/shop/jobs", secrets()), HasSubstr(R"({"data":[]})"));
  for (const std::string wrong :
       {R"({"command":"migrate"})", R"({"command":"outbox work"})", R"({"command":""})"}) {
    EXPECT_THAT(post("jobs", wrong), HasSubstr("404")) << wrong;
  }
  for (const std::string wrong : {R"({"command":"outbox retry","options":{"yes":""}})",
                                  R"({"command":"outbox retry","options":{"db":"/tmp/x"}})",
                                  R"({"command":"outbox retry","options":{"all":"false"}})",
                                  R"({"command":"outbox retry","operands":"1"})",
                                  R"({"comand":"outbox retry"})", "[]", "{"}) {
    EXPECT_THAT(post("jobs", wrong), HasSubstr("400")) << wrong;
  }
  EXPECT_THAT(post("jobs/1/confirm", "{}"), HasSubstr("404"));
  EXPECT_THAT(post("check", "{}"), AllOf(HasSubstr("405"), HasSubstr("nothing but a job")));
  EXPECT_EQ(state_of_first(), "parked");
}

TEST_F(ActingConsole, AsksEightQuestionsAtMostAndEndsWithThem) {
  const std::string first = asking(R"({"command":"timers hold"})");
  for (int i = 1; i < 8; ++i) asking(R"({"command":"timers hold"})");
  asking(R"({"command":"timers hold"})");
  EXPECT_TRUE(becomes(first, "cancelled"));
  EXPECT_THAT(test::member(job(first), "error"), HasSubstr("newer"));
  console_->signal(SIGTERM);
  EXPECT_EQ(console_->wait(), 0);
}

TEST_F(ActingConsole, LetsConfirmedJobsWaitForEachOther) {
  test::RawSqlite other{db_};
  other.run("BEGIN IMMEDIATE");
  const std::string first = asking(R"({"command":"timers hold"})");
  const std::string second = asking(R"({"command":"timers hold"})");
  post("jobs/" + first + "/confirm", "{}");
  EXPECT_TRUE(becomes(first, "runs")) << job(first);
  EXPECT_THAT(post("jobs/" + second + "/confirm", "{}"), HasSubstr(R"("state":"waits")"));
  EXPECT_THAT(post("jobs/" + second + "/cancel", "{}"), HasSubstr("200 OK"));
  other.run("COMMIT");
  EXPECT_TRUE(becomes(first, "done")) << job(first);
  EXPECT_TRUE(becomes(second, "cancelled")) << job(second);
}

TEST_F(Console, ActsForNobodyUnlessItMay) {
  const Browser browser = visit();
  EXPECT_THAT(ask(port_, "POST /api/v1/s/shop/jobs HTTP/1.1\r\n" + host() +
                             "Cookie: " + browser.cookie + "\r\nStela-Token: " + browser.token +
                             "\r\nContent-Type: application/json\r\nConnection: close\r\n"
                             "Content-Length: 2\r\n\r\n{}"),
              AllOf(HasSubstr("405"), HasSubstr("this console only reads")));
  EXPECT_EQ(
      test::run({"serve", "--db", "postgresql://app@127.0.0.1:1/shop", "--allow-actions"}).code, 2);
  EXPECT_EQ(test::run({"serve", "--db", db_, "--db", "b=" + db_, "--operate-as", "c=" + db_}).code,
            2);
}

/// A right request, changed in a few places.
std::string broken(std::string request, std::mt19937& random) {
  const std::vector<std::string> pieces{"\r\n",
                                        "\n",
                                        std::string(1, '\0'),
                                        "%00",
                                        "%2f",
                                        "..",
                                        "\xff\xfe",
                                        "HTTP/2.0",
                                        "&=?#",
                                        "{\"",
                                        std::string(9000, 'A'),
                                        "--db",
                                        "Transfer-Encoding: chunked\r\n",
                                        "Content-Length: 99999999999999999999\r\n"};
  for (unsigned i = 0, changes = 1 + random() % 4; i < changes && !request.empty(); ++i) {
    const std::size_t at = random() % request.size();
    switch (random() % 3) {
      case 0:
        request.insert(at, pieces[random() % pieces.size()]);
        break;
      case 1:
        request[at] = static_cast<char>(random() % 256);
        break;
      default:
        request.erase(at, 1 + random() % 8);
    }
  }
  return request;
}

TEST_F(Console, SurvivesWhatMakesNoSense) {
  const std::string authorization = host() + "Authorization: Bearer " + token_ + "\r\n\r\n";
  const std::vector<std::string> right{
      "GET /api/v1/s/shop/events/list?limit=3 HTTP/1.1\r\n" + authorization,
      "GET /api/v1/s/shop/find?q=%61b HTTP/1.1\r\n" + authorization,
      "POST /api/v1/session HTTP/1.1\r\n" + host() +
          "Content-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"key\":\"ab\"}"};
  std::mt19937 random{7};
  for (int i = 0; i < 600; ++i) {
    const std::string request = broken(right[random() % right.size()], random);
    EXPECT_THAT(test::ask_and_end(port_, request), Not(HasSubstr("HTTP/1.1 500"))) << request;
  }
  EXPECT_THAT(request("GET /healthz", host()), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace stela::tool::console_test

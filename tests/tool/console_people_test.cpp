// What people may see and do on the console.
#include "console/people.hpp"
#include "console/redaction.hpp"
#include "console/routes.hpp"
#include "console/sha256.hpp"
#include "tool/program.hpp"
#include "tool/served_console.hpp"

#ifdef STELA_TESTS_POSTGRES
#include "support/postgres_server.hpp"

#include <stela/eventstore/postgres.hpp>
#endif

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace stela::tool::console_people_test {
namespace {

using test::body_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Sha256, IsThatOfSha256sum) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(55, 'x')),
            "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(sha256(std::string(119, 'y') + "."),
            "b4b4c5bd55bed2ea60524a7219677d8397a4b239ae142d35246bdb8798c2a18d");
}

TEST(Redaction, KeepsKeysTypesAndLengthsWhereItMasks) {
  const std::string json =
      R"({"sequence":7,"stream":"order-1","state":"parked","tags":["äb"],"error":"no: x",)"
      R"("recorded_at":"2026-11-29T19:36:12Z","sentence":"p03 waits: no x","broker_to":null,)"
      R"("payload":{"name":"ann","n":12,"paid":true,"at":"x","none":null,"lines":[{"a":"ab"}]}})";
  EXPECT_EQ((Redaction{Payloads::full, true}.json(json)), json);
  EXPECT_EQ(
      (Redaction{Payloads::masked, true}.json(json)),
      R"({"sequence":7,"stream":"order-1","state":"parked","tags":["**"],"error":"*****",)"
      R"("recorded_at":"2026-11-29T19:36:12Z","sentence":"p03 waits: ****","broker_to":null,)"
      R"("payload":{"name":"***","n":0,"paid":false,"at":"*","none":null,"lines":[{"a":"**"}]}})");
}

TEST(Redaction, HidesWhateverIsntKnownToBeAName) {
  const std::string hidden = "\"(not shown)\"";
  const Redaction redaction{Payloads::none, true};
  EXPECT_EQ(
      redaction.json(R"({"stream":"order-1","tags":["b"],"payload":{"n":1},"new":"x"})"),
      R"({"stream":"order-1","tags":[)" + hidden + R"(],"payload":null,"new":)" + hidden + "}");
  EXPECT_EQ(redaction.sentence("p03 waits: no printer"), "p03 waits: (not shown)");
  const std::string ours = "partition p03: its stream ends at 7, before what was published: ";
  EXPECT_EQ(redaction.sentence(ours + "8"), ours + "(not shown)");
  EXPECT_EQ(redaction.sentence("partition p03: its stream is 95 % full"),
            "partition p03: its stream is 95 % full");
  EXPECT_EQ(redaction.json(R"({"known":"known to bob: no answer from the broker, says ann"})"),
            R"({"known":"known to bob: )" + hidden.substr(1) + "}");
  EXPECT_EQ(redaction.sentence("the broker refuses it: its stream of ann is full"),
            "the broker refuses it: (not shown)");
  const std::string found = R"({"sentence":"no 'ann'"})";
  EXPECT_EQ(redaction.json(found), found);
  EXPECT_EQ(redaction.without_sentences().json(found), R"({"sentence":)" + hidden + "}");
  EXPECT_EQ(redaction.json(R"({"why":"ann moved","known":"known to bob: ann moved"})"),
            R"({"why":)" + hidden + R"(,"known":"known to bob: )" + hidden.substr(1) + "}");
  EXPECT_EQ(redaction.json(R"({"state":"word"})", true), R"({"state":null})");
  EXPECT_EQ(redaction.json(R"({"state":"word"})"), R"({"state":"word"})");
}

class PeopleFile : public ::testing::Test {
 protected:
  std::string refusal_of(const std::string& text) const {
    test::write_private(file_, text);
    try {
      People{file_};
    } catch (const std::exception& e) {
      return e.what();
    }
    return {};
  }
  const test::TempDir folder_;
  const std::string file_ = folder_.file("people");
};

TEST_F(PeopleFile, NamesWhatItDoesntUnderstand) {
  const std::string hash(64, '0');
  EXPECT_EQ(refusal_of("# who may what\n\nann view,operate " + hash + "\nbob view\n"), "");
  EXPECT_THAT(refusal_of("ann\n"), HasSubstr(":1: a line is NAME GRANTS SHA256"));
  EXPECT_THAT(refusal_of("\nann all " + hash + "\n"), HasSubstr(":2: there is no grant 'all'"));
  EXPECT_THAT(refusal_of("ann operate " + hash + "\n"), HasSubstr("'view'"));
  EXPECT_THAT(refusal_of("ann view 1234\n"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(refusal_of("ann view " + hash + " x\n"), HasSubstr("a line is"));
  EXPECT_THAT(refusal_of("ann view\nann view\n"), HasSubstr("twice"));
  EXPECT_THAT(refusal_of("ann view,payloads=none,payloads\n"), HasSubstr("'payloads' is there"));
  EXPECT_THAT(refusal_of("\xef\xbb\xbf"
                         "ann view\n"),
              HasSubstr("letters that are seen"));
  EXPECT_THAT(refusal_of("ann view " + hash + "\nbob view " + hash + "\n"),
              HasSubstr("the same token"));
  test::write_private(file_, "ann view\n");
  std::filesystem::permissions(file_, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  EXPECT_THROW(People{file_}, std::exception);
}

TEST_F(PeopleFile, HasNobodyWhoCouldBeTakenForAnother) {
  const People::Taken taken{.name = "root", .token = "secret"};
  const auto refusal = [&](const std::string& text) -> std::string {
    test::write_private(file_, text);
    try {
      People{file_, taken};
    } catch (const std::exception& e) {
      return e.what();
    }
    return {};
  };
  EXPECT_THAT(refusal("root view " + sha256("a") + "\n"), HasSubstr("'root' runs this console"));
  EXPECT_THAT(refusal("ann view " + sha256("secret") + "\n"), HasSubstr("that of --token-file"));
  EXPECT_EQ(refusal("ann view " + sha256("a") + "\n"), "");
  People people{file_, taken};
  test::write_private(file_, "root view,admin " + sha256("b") + "\n");
  EXPECT_FALSE(people.find("root")) << "nor later";
}

TEST_F(PeopleFile, IsNoPipeThatIsWaitedFor) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_THROW(People{file_}, std::exception);
}

TEST_F(PeopleFile, IsReadAgainWhenItHasChanged) {
  test::write_private(file_, "ann view " + sha256("a") + "\n");
  People people{file_};
  EXPECT_EQ(people.name_by_token("a"), "ann");
  EXPECT_FALSE(people.name_by_token(""));
  EXPECT_FALSE(people.find("ann")->grants.operate);
  test::write_private(file_, "ann view,operate " + sha256("b") + "\n");
  EXPECT_FALSE(people.name_by_token("a"));
  EXPECT_TRUE(people.find("ann")->grants.operate);
  test::write_private(file_, "ann everything\n");
  EXPECT_FALSE(people.find("ann")) << "nobody gets in by a file with a mistake";
  std::filesystem::remove(file_);
  EXPECT_FALSE(people.name_by_token("b"));
}

/// A lower-case word, as states are.
constexpr const char* canary = "kanarie";

/// A console that acts, and a person for each set of grants; their names are their tokens.
class ConsoleOfPeople : public test::ServedConsole {
 protected:
  void SetUp() override {
    std::string lines;
    for (const auto& [name, grants] : grants_) {
      lines += name + " " + grants + " " + sha256(name) + "\n";
    }
    test::write_private(people_file_, lines);
    ServedConsole::SetUp();
    start_for_people();
  }
  void start_for_people(const test::RunOptions& options = {}) {
    std::vector<std::string> words{"--people-file", people_file_};
    const std::vector<std::string> acting = way_to_act();
    words.insert(words.end(), acting.begin(), acting.end());
    start(words, options);
  }
  virtual std::vector<std::string> way_to_act() const { return {"--allow-actions"}; }

  std::string as(const std::string& name, const std::string& path) const {
    return request("GET /api/v1/s/shop/" + path, bearer(name));
  }
  std::string post_as(const std::string& name, const std::string& path,
                      const std::string& body) const {
    return post_json("/api/v1/s/shop/" + path, bearer(name), body);
  }
  std::string asking(const std::string& name, const std::string& body) const {
    const std::string answer = post_as(name, "jobs", body);
    EXPECT_THAT(answer, HasSubstr("201 Created")) << body;
    const std::string number = test::member(body_of(answer), "job");
    EXPECT_TRUE(becomes(number, "asks")) << as("full", "jobs/" + number);
    return number;
  }
  bool becomes(const std::string& number, const std::string& state) const {
    return test::eventually(
        [&] { return test::member(body_of(as("full", "jobs/" + number)), "state") == state; });
  }

  const std::map<std::string, std::string> grants_{
      {"viewer", "view"},
      {"masked", "view,payloads=masked"},
      {"full", "view,payloads"},
      {"operator", "view,operate"},
      {"colleague", "view,operate,payloads"},
      {"admin", "view,admin"},
  };
  const std::string people_file_ = folder_.file("people");
};

bool may(const std::string& grants, Grant grant) {
  const std::string wanted = grant == Grant::payloads ? "payloads" : std::string{name_of(grant)};
  return ("," + grants + ",").find("," + wanted + ",") != std::string::npos;
}

/// Its words with `between` between them, and whatever operands it needs.
std::string path_of(std::string_view command) {
  std::string path{command};
  std::replace(path.begin(), path.end(), ' ', '/');
  const std::map<std::string, std::string> operands{
      {"outbox/show", "/1"},
      {"events/show", "/1"},
      {"events/tree", "/1"},
      {"streams/show", "/order-1"},
      {"streams/state", "/bill-kanarie"},
      {"tags/show", "/bird-kanarie"},
      {"processes/show", "/payment_deadline"},
      {"timers/show", "/payment_deadline/booking-1/not_paid"}};
  const auto found = operands.find(path);
  return found == operands.end() ? path : path + found->second;
}

TEST_F(ConsoleOfPeople, GivesEachWhatTheirGrantsAreFor) {
  for (const auto& [name, grants] : grants_) {
    for (const Route& route : all_routes()) {
      const std::string answer = as(name, path_of(route.command));
      EXPECT_EQ(answer.find(" 403 ") == std::string::npos, may(grants, route.grant))
          << name << " " << route.command << answer;
      EXPECT_THAT(answer, Not(HasSubstr(" 401 ")));
    }
    for (const std::string path : {"overview", "find?q=order-1", "jobs"}) {
      EXPECT_THAT(as(name, path), HasSubstr("200 OK")) << name << path;
    }
    for (const Action& action : all_actions()) {
      const std::string answer =
          post_as(name, "jobs", R"({"command":")" + std::string{action.command} + "\"}");
      EXPECT_EQ(answer.find(" 403 ") == std::string::npos, may(grants, action.grant))
          << name << " " << action.command;
      if (answer.find(" 201 ") == std::string::npos) continue;
      post_as(name, "jobs/" + test::member(body_of(answer), "job") + "/cancel", "{}");
    }
  }
  EXPECT_THAT(as("nobody", "check"), HasSubstr(" 401 "));
  EXPECT_THAT(as("", "check"), HasSubstr(" 401 "));
}

TEST_F(ConsoleOfPeople, OffersNoCommandThatIsInNoTable) {
  const auto is_known = [](const std::string& command) {
    const auto same = [&](const auto& one) { return one.command == command; };
    return std::any_of(all_routes().begin(), all_routes().end(), same) ||
           std::any_of(all_actions().begin(), all_actions().end(), same);
  };
  int others = 0;
  for (const std::string& line : test::lines_of(test::run_well({"manual", "--markdown"}))) {
    if (!line.starts_with("## ") || is_known(line.substr(3))) continue;
    ++others;
    for (const std::string name : {"full", "admin", "colleague"}) {
      EXPECT_THAT(as(name, path_of(line.substr(3))), HasSubstr(" 404 ")) << line;
      EXPECT_THAT(post_as(name, "jobs", R"({"command":")" + line.substr(3) + "\"}"),
                  HasSubstr(" 404 "))
          << line;
    }
  }
  EXPECT_GT(others, 20);
}

TEST_F(ConsoleOfPeople, SaysWhoAsksAndWhatTheyMay) {
  const std::string opened = post_json("/api/v1/session", host(), R"({"token":"masked"})");
  EXPECT_THAT(opened,
              AllOf(HasSubstr(R"("who":"masked")"), HasSubstr(R"("can_act":false,"acts":true)"),
                    HasSubstr(R"("grants":{"view":true,"payloads":"masked","operate":false,)")));
  const Browser browser = opened_by(opened);
  const std::string secrets = host() + browser.fields();
  EXPECT_THAT(request("GET /api/v1/session", secrets),
              AllOf(HasSubstr(R"("who":"masked")"), Not(HasSubstr(browser.token))));
  EXPECT_THAT(post_json("/api/v1/s/shop/jobs", secrets, R"({"command":"timers hold"})"),
              AllOf(HasSubstr("403"), HasSubstr(R"("grant":"operate")")));
  EXPECT_THAT(post_json("/api/v1/session", host(), R"({"token":"nobody"})"),
              AllOf(HasSubstr("401"), HasSubstr(R"("ways":["link","token"])")));
  EXPECT_THAT(post_json("/api/v1/session", host(), R"({"token":""})"), HasSubstr("401"));
  test::write_private(people_file_, "masked view " + sha256("another") + "\n");
  EXPECT_THAT(request("GET /api/v1/session", secrets), HasSubstr("401"))
      << "a session ends with the token that opened it";
  EXPECT_THAT(request("GET /api/v1/session", host() + visit().fields()),
              HasSubstr(R"("operate":true,"admin":true)"))
      << "the link is that of whoever started it";
}

TEST_F(ConsoleOfPeople, NotesWhoActedAndWhoDecided) {
  const std::string retry =
      asking("operator", R"({"command":"outbox retry","options":{"all":""}})");
  EXPECT_THAT(as("viewer", "jobs/" + retry), HasSubstr(R"("asked_by":"operator@)"));
  EXPECT_THAT(post_as("viewer", "jobs/" + retry + "/confirm", "{}"), HasSubstr(" 403 "));
  EXPECT_THAT(post_as("viewer", "jobs/" + retry + "/cancel", "{}"), HasSubstr(" 403 "));
  EXPECT_THAT(post_as("colleague", "jobs/" + retry + "/confirm", "{}"), HasSubstr("200 OK"));
  EXPECT_TRUE(becomes(retry, "done")) << as("full", "jobs/" + retry);
  const std::string hold = asking("operator", R"({"command":"timers hold"})");
  post_as("colleague", "jobs/" + hold + "/cancel", "{}");
  EXPECT_TRUE(becomes(hold, "cancelled"));
  EXPECT_THAT(as("full", "jobs/" + hold), HasSubstr(R"("decided_by":"colleague@)"));
  const std::string log = test::run_well({"log", "--db", db_, "--json", "--who", "colleague"});
  EXPECT_THAT(log, AllOf(HasSubstr(R"("part":"console","what":"confirmed")"),
                         HasSubstr(R"("part":"console","what":"cancelled")"),
                         HasSubstr("outbox retry --all, which operator@")));
  EXPECT_THAT(test::run_well({"log", "--db", db_, "--json", "--who", "operator"}),
              AllOf(HasSubstr(R"("part":"outbox")"), HasSubstr("(console)")));
}

TEST_F(ConsoleOfPeople, LetsNobodySearchInWhatTheyMayNotSee) {
  for (const std::string name : {"viewer", "masked", "operator"}) {
    EXPECT_THAT(as(name, "events/query?tag=bird-1"), HasSubstr(R"("grant":"payloads")"));
    EXPECT_THAT(as(name, "outbox/list?error=x"), HasSubstr(R"("grant":"payloads")"));
    EXPECT_THAT(as(name, "find?q=customer-7"), HasSubstr(R"("kind":null)"));
  }
  EXPECT_THAT(as("full", "find?q=customer-7"), HasSubstr(R"("kind":"tag")"));
  const std::string search = R"({"command":"outbox retry","options":{"error":"printer"}})";
  EXPECT_THAT(post_as("operator", "jobs", search), HasSubstr(R"("grant":"payloads")"));
  const std::string number = asking("colleague", search);
  EXPECT_THAT(as("viewer", "jobs/" + number), Not(HasSubstr("printer")));
  EXPECT_THAT(as("full", "jobs/" + number), HasSubstr("--error=printer"));
}

TEST_F(ConsoleOfPeople, ShowsNotWhatOperatorsSayToThoseWhoMayNotSeePayloads) {
  const std::string number = asking(
      "operator",
      R"({"command":"findings ack","operands":["outbox_parked"],"options":{"why":"kanarie"}})");
  EXPECT_THAT(as("full", "jobs/" + number), HasSubstr("kanarie"));
  EXPECT_THAT(as("viewer", "jobs/" + number),
              AllOf(HasSubstr("Run 'findings ack"), Not(HasSubstr("kanarie"))));
}

/// Puts the canary wherever an application's words can be; `sql` runs a statement.
void put_canaries(Store& store, const std::string& db,
                  const std::function<void(const std::string&)>& sql) {
  test::run_well(
      {"events", "append", "--db", db, "--stdin"},
      {.input = R"({"stream":"bill-kanarie","type":"order.placed","publish":true,"data":)"
                R"({"customer":"kanarie","total_cents":100}})"
                "\n"
                R"({"stream":"note-9","type":"note.taken","data":{"text":"kanarie"},)"
                R"("tags":["bird-kanarie"],"actor":"kanarie"})"});
  const std::string payload = " = (SELECT payload FROM events WHERE sequence = " +
                              std::to_string(store.last_sequence().value()) + ")";
  for (const std::string text :
       {"outbox_parked SET error = 'kanarie'", "outbox_discarded SET error = 'kanarie'",
        "outbox_messages SET last_error = 'kanarie'",
        "outbox_partitions SET last_error = 'kanarie', attempts = 3",
        "outbox_actions SET detail = 'kanarie', selection = 'kanarie'",
        "projections SET error = 'kanarie'", "projection_parked SET error = 'kanarie'",
        "projection_timer_holds SET detail = 'kanarie'",
        "projection_timer_actions SET detail = 'kanarie'", "inbox_readers SET error = 'kanarie'",
        "stela_changes SET detail = 'kanarie'"}) {
    sql("UPDATE " + text);
  }
  sql("UPDATE projection_timers SET error = 'kanarie', payload" + payload);
  sql("UPDATE inbox_parked SET error = 'kanarie', headers = '{\"x\":\"kanarie\"}', payload" +
      payload);
}

class CanaryConsole : public ConsoleOfPeople {
 protected:
  void fill() override {
    ServedConsole::fill();
    Store store = open_or_create();
    put_canaries(store, db_, [this](const std::string& sql) { test::RawSqlite{db_}.run(sql); });
  }

  void walk() {
    start_for_people({.program = STELA_EMBEDDING});
    std::vector<std::string> paths{"overview",
                                   "jobs",
                                   "outbox/list?state=parked",
                                   "timers/list?parked=1",
                                   "events/list?newest-first=1",
                                   "events/list?stream=note-9",
                                   "streams/show/note-9",
                                   "events/tree/9",
                                   "why/order-1",
                                   "why/picky",
                                   "why/billing",
                                   "inbox/list?newest-first=1",
                                   "log/o1"};
    for (const Route& route : all_routes()) paths.push_back(path_of(route.command));
    const std::string job =
        asking("colleague", R"({"command":"projections retry","operands":["picky"]})");
    paths.push_back("jobs/" + job);
    int shown = 0;
    for (const std::string& path : paths) {
      for (const std::string name : {"viewer", "masked", "operator", "admin"}) {
        std::string answer = body_of(as(name, path));
        // It is the name of a stream as well, which is no payload.
        for (std::size_t at; (at = answer.find("bill-kanarie")) != std::string::npos;) {
          answer.erase(at, sizeof "bill-kanarie" - 1);
        }
        EXPECT_THAT(answer, Not(HasSubstr(canary))) << name << " " << path;
      }
      if (body_of(as("full", path)).find("kanarie") != std::string::npos) ++shown;
    }
    for (const std::string path :
         {"events/list?stream=note-9", "streams/state/bill-kanarie", "tags/list",
          "outbox/list?state=parked", "outbox/groups", "timers/list", "inbox/list", "why/1",
          "projections/status", "log", "changes", "overview"}) {
      EXPECT_THAT(body_of(as("full", path)), HasSubstr(canary)) << path;
    }
    EXPECT_GT(shown, 20);
    EXPECT_THAT(as("masked", "events/list?stream=note-9"),
                HasSubstr(R"("payload":{"text":"*******"})"));
    EXPECT_THAT(as("full", "streams/state/bill-kanarie"), HasSubstr(R"("total_cents":100)"));
    EXPECT_THAT(as("masked", "streams/state/bill-kanarie"), HasSubstr(R"("total_cents":0)"));
    EXPECT_THAT(as("viewer", "streams/state/bill-kanarie"), HasSubstr(R"("state":null)"));
    EXPECT_THAT(as("viewer", "events/list?stream=note-9"),
                AllOf(HasSubstr(R"("payload":null)"), HasSubstr("\"tags\":[\"(not shown)\"]")));
  }
};

TEST_F(CanaryConsole, ShowsNoPayloadToThoseWhoMayNotSeeAny) {
  walk();
}

#ifdef STELA_TESTS_POSTGRES
class CanaryConsoleOnPostgres : public CanaryConsole {
 protected:
  void fill() override {
    psql("CREATE DATABASE shop", "postgres");
    test::run_well({"migrate", "--db", place()});
    Store store = postgres::open(place());
    const auto sql = [this](const std::string& text) { psql("SET search_path = stela; " + text); };
    test::populate(store, place(), sql);
    put_canaries(store, place(), sql);
  }
  std::string place() const override { return server_.url("shop"); }
  std::vector<std::string> way_to_act() const override { return {"--operate-as", place()}; }
  void psql(const std::string& text, const std::string& database = "shop") {
    const test::Ran ran =
        test::run({"-X", "-q", "-c", text, server_.url(database)}, {.program = "/usr/bin/psql"});
    EXPECT_EQ(ran.code, 0) << ran.err;
  }

  test::PostgresServer server_;
};

TEST_F(CanaryConsoleOnPostgres, ShowsNoPayloadToThoseWhoMayNotSeeAny) {
  walk();
}
#endif

}  // namespace
}  // namespace stela::tool::console_people_test

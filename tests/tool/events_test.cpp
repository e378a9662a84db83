#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace stela::test::events_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class ToolEvents : public ::testing::Test {
 protected:
  void SetUp() override { run_well({"migrate", "--db", db_}); }
  std::string append(const std::string& stream, const std::string& data,
                     std::vector<std::string> more = {}) {
    std::vector<std::string> words{"events", "append", "--db",         db_,      "--stream",
                                   stream,   "--type", "order.placed", "--data", data};
    words.insert(words.end(), more.begin(), more.end());
    return run_well(words);
  }
  Ran stdin_append(const std::string& lines, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"events", "append", "--db", db_, "--stdin"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {.input = lines});
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
};

TEST_F(ToolEvents, AppendPrintsCommittedEvents) {
  const std::string first = append("order-1", "{\"a\": [1, 2]}");
  const std::string second = append("order-1", "{}");

  EXPECT_EQ(member(first, "sequence"), "1");
  EXPECT_EQ(member(second, "stream_version"), "2");
  const std::string shown = run_well({"events", "show", "1", "--db", db_, "--json"});
  EXPECT_EQ(member(shown, "id"), member(first, "id"));
  EXPECT_THAT(shown, HasSubstr(R"("payload":{"a":[1,2]})"));
}

TEST_F(ToolEvents, AppendHonoursTheExpectedVersion) {
  append("order-1", "{}", {"--expected", "0"});
  const Ran ran = run({"events", "append", "--db", db_, "--stream", "order-1", "--type", "a.b",
                       "--data", "{}", "--expected", "0"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("order-1"));
  EXPECT_THAT(lines_of(run_well({"events", "list", "--db", db_, "--json"})), SizeIs(1));
}

TEST_F(ToolEvents, WholeNumbersStayExact) {
  append("order-1", R"({"most":9223372036854775807,"least":-9223372036854775808})");
  EXPECT_THAT(run_well({"events", "show", "1", "--db", db_, "--json"}),
              HasSubstr(R"({"most":9223372036854775807,"least":-9223372036854775808})"));
}

TEST_F(ToolEvents, StdinIsATransactionALine) {
  const Ran ran = stdin_append(
      "{\"stream\":\"order-1\",\"type\":\"a.b\",\"data\":{}}\n\n"
      "{\"stream\":\"order-2\",\"type\":\"a.b\",\"data\":{\"x\":1},\"version\":3,\"publish\":true,"
      "\"actor\":\"ada\",\"correlation\":\"c-1\"}\n");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(lines_of(ran.out), SizeIs(2));
  const std::string shown = run_well({"events", "show", "2", "--db", db_, "--json"});
  EXPECT_EQ(member(shown, "schema_version"), "3");
  EXPECT_EQ(member(shown, "publishes"), "true");
  EXPECT_EQ(member(shown, "correlation_id"), "c-1");
  EXPECT_THAT(shown, HasSubstr("\"ada\""));
}

TEST_F(ToolEvents, ABadLineIsNamedWithTheCommittedOnes) {
  const std::string good = "{\"stream\":\"order-1\",\"type\":\"a.b\",\"data\":{}}\n";
  const Ran ran = stdin_append(good + good + "{\"stream\":\"order-1\",\n" + good);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(lines_of(ran.out), SizeIs(2));
  EXPECT_THAT(ran.err, HasSubstr("line 3: "));
  EXPECT_THAT(ran.err,
              HasSubstr("lines 1 to 2 are committed, up to sequence 2; go on from line 3"));
  EXPECT_THAT(lines_of(run_well({"events", "list", "--db", db_, "--json"})), SizeIs(2));
}

TEST_F(ToolEvents, ABatchCommitsWhollyOrNot) {
  const std::string good = "{\"data\":{}}\n";
  const std::vector<std::string> flags{"--stream", "order-1", "--type", "a.b", "--batch", "2"};
  EXPECT_THAT(lines_of(stdin_append(good + good + good, flags).out), SizeIs(3));
  const Ran ran =
      stdin_append(good + good + good + "{\"data\":{},\"stream\":\"no stream\"}\n", flags);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("lines 1 to 2 are committed, up to sequence 5"));
  EXPECT_THAT(lines_of(run_well({"events", "list", "--db", db_, "--json"})), SizeIs(5));
}

TEST_F(ToolEvents, ListFiltersAndSaysWhenThereIsMore) {
  append("order-1", "{}");
  append("order-2", "{}");
  append("bill-1", "{}");
  EXPECT_THAT(run_well({"events", "list", "--db", db_, "--json", "--category", "order"}),
              Not(HasSubstr("bill-1")));
  EXPECT_THAT(lines_of(run_well({"events", "list", "--db", db_, "--json", "--stream", "order-2"})),
              SizeIs(1));
  EXPECT_THAT(lines_of(run_well({"events", "list", "--db", db_, "--json", "--since", "1h"})),
              SizeIs(3));
  const Ran first =
      run({"events", "list", "--db", db_, "--json", "--limit", "1", "--newest-first"});
  EXPECT_EQ(member(first.out, "sequence"), "3");
  EXPECT_THAT(first.err, HasSubstr("more: --after 3\n"));
  EXPECT_THAT(run_well({"events", "list", "--db", db_}), HasSubstr("bill-1"));
}

TEST_F(ToolEvents, ShowTellsCauseAndEffects) {
  const std::string cause = append("order-1", "{}");
  append("bill-1", "{}", {"--causation", member(cause, "id")});
  EXPECT_THAT(run_well({"events", "show", member(cause, "id"), "--db", db_}),
              HasSubstr("effect       event 2 (order.placed v1, version 1 of 'bill-1')"));
  EXPECT_THAT(run_well({"events", "show", "2", "--db", db_}),
              HasSubstr("cause        event 1 (order.placed v1, version 1 of 'order-1')"));
  EXPECT_EQ(run({"events", "show", "99", "--db", db_}).code, 3);
}

TEST_F(ToolEvents, ShowListsEffectsInJson) {
  const std::string cause = append("order-1", "{}");
  append("bill-1", "{}", {"--causation", member(cause, "id")});
  EXPECT_THAT(run_well({"events", "show", "1", "--db", db_, "--json"}),
              HasSubstr(R"("effects":[{"sequence":2,"stream":"bill-1","stream_version":1,"id":")"));
  EXPECT_THAT(run_well({"events", "show", "2", "--db", db_, "--json"}),
              HasSubstr(R"("effects":[])"));
}

TEST_F(ToolEvents, TreeShowsCausesAndEffectsOverStreams) {
  run_well({"outbox", "enable", "--db", db_});
  const std::string order = append("order-1", "{}");
  const std::string payment =
      append("payment-1", "{}", {"--causation", member(order, "id"), "--publish"});
  append("letter-1", "{}", {"--causation", member(payment, "id")});
  append("parcel-1", "{}", {"--causation", member(order, "id")});

  const Ran tree = run({"events", "tree", "2", "--db", db_});
  EXPECT_THAT(
      lines_of(tree.out),
      ElementsAre(HasSubstr("STATE"), AllOf(HasSubstr("1  order.placed "), HasSubstr("local")),
                  AllOf(HasSubstr("2    order.placed * "), HasSubstr("Z  pending")),
                  AllOf(HasSubstr("3      order.placed "), HasSubstr("letter-1@1"))));
  EXPECT_EQ(tree.err, "");

  const std::string whole =
      run_well({"events", "tree", member(order, "id"), "--db", db_, "--json"});
  EXPECT_THAT(lines_of(whole), SizeIs(4));
  EXPECT_EQ(member(lines_of(whole)[2], "depth"), "2");
  EXPECT_EQ(member(lines_of(whole)[1], "state"), "pending");
  EXPECT_EQ(member(lines_of(whole)[1], "partition"), "all");
  EXPECT_EQ(run({"events", "tree", "9", "--db", db_}).code, 3);
}

TEST_F(ToolEvents, TreeSaysWhereItIsCut) {
  const std::string elsewhere = "0190c5e2-7a1b-7c3d-8e4f-5a6b7c8d9e0f";
  const std::string order = append("order-1", "{}", {"--causation", elsewhere});
  append("bill-1", "{}", {"--causation", member(order, "id")});
  append("bill-2", "{}", {"--causation", member(order, "id")});

  const Ran ran = run({"events", "tree", "1", "--db", db_, "--limit", "1", "--json"});
  EXPECT_THAT(lines_of(ran.out), SizeIs(2));
  EXPECT_THAT(ran.err,
              HasSubstr("The cause of the first one, " + elsewhere + ", isn't found here"));
  EXPECT_THAT(ran.err, HasSubstr("More effects: use --limit"));
}

TEST_F(ToolEvents, ListsACorrelationOrEffectsPageByPage) {
  const std::string order = append("order-1", "{}", {"--correlation", "request-7"});
  append("note-1", "{}");
  append("bill-1", "{}", {"--causation", member(order, "id"), "--correlation", "request-7"});
  const auto list = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"events", "list", "--db", db_, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(lines_of(list({"--correlation", "request-7"}).out), SizeIs(2));
    EXPECT_EQ(member(list({"--causation", member(order, "id")}).out, "sequence"), "3");
    const Ran first = list({"--correlation", "request-7", "--limit", "1"});
    EXPECT_EQ(member(first.out, "sequence"), "1");
    EXPECT_THAT(first.err, HasSubstr("more: --from 3"));
    const Ran newest = list({"--correlation", "request-7", "--limit", "1", "--newest-first"});
    EXPECT_EQ(member(newest.out, "sequence"), "3");
    EXPECT_THAT(newest.err, HasSubstr("more: --to 1"));
    EXPECT_EQ(member(run_well({"index", "build", "--db", db_, "--json"}), "through"), "3");
  }
  EXPECT_EQ(list({"--correlation", "request-7", "--type", "a.b"}).code, 2);
  EXPECT_EQ(list({"--causation", "7"}).code, 2);
}

TEST_F(ToolEvents, AnIndexIsBuiltAgainAsVerifyAdvises) {
  append("order-1", "{}", {"--correlation", "request-7"});
  run_well({"index", "build", "--db", db_});
  RawSqlite{db_}.run("DELETE FROM event_links");

  EXPECT_THAT(run({"verify", "--db", db_}).out, HasSubstr("'stela index build --again'"));
  EXPECT_THAT(run_well({"index", "build", "--again", "--db", db_}), HasSubstr("Indexed 1 event."));
  run_well({"verify", "--db", db_});
}

TEST_F(ToolEvents, TailFollowsOtherProcesses) {
  append("order-1", "{}");
  Running tail{{"events", "tail", "--db", db_, "--json", "--from", "1"}};
  ASSERT_TRUE(eventually([&] { return lines_of(tail.out()).size() == 1; })) << tail.err();
  append("order-2", "{}");
  ASSERT_TRUE(eventually([&] { return lines_of(tail.out()).size() == 2; })) << tail.err();
  tail.signal(SIGINT);
  EXPECT_EQ(tail.wait(), 0);
}

TEST_F(ToolEvents, HostileTextNeverReachesTheTerminal) {
  RawSqlite raw{db_};
  append("order-\xc2\xa0\xe2\x80\xae",
         "{\"x\":\"\x7f\xc2\x9b"
         "31m\"}",
         {"--actor",
          "\xe2\x80\xae"
          "ada"});
  raw.drop_triggers();
  raw.run("UPDATE events SET payload = CAST(x'7b1b5b33316d7d' AS BLOB)");
  for (const char* command : {"list", "tail"}) {
    for (const char* json : {"--json", "--no-color"}) {
      const Ran ran = run({"events", command, "--db", db_, "--limit", "1", json});
      const std::string all = ran.out + ran.err;
      EXPECT_EQ(all.find('\x1b'), std::string::npos) << all;
      EXPECT_EQ(all.find('\x7f'), std::string::npos) << all;
      EXPECT_EQ(all.find("\xc2\x9b"), std::string::npos) << all;
      EXPECT_EQ(all.find("\xe2\x80\xae"), std::string::npos) << all;
    }
  }
}

TEST_F(ToolEvents, StatsCountByKind) {
  append("order-1", "{}");
  append("order-2", "{}", {"--publish"});
  const auto lines = lines_of(run_well({"events", "stats", "--db", db_, "--json"}));
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(member(lines[0], "events"), "1");
  EXPECT_THAT(run_well({"events", "stats", "--db", db_}),
              HasSubstr("2 events with 4 B of payload."));
}

TEST_F(ToolEvents, StreamsAreListedAndShownAsATimeline) {
  append("order-1", "{}");
  append("order-1", "{}", {"--actor", "ada"});
  append("bill-1", "{}");
  const auto streams = lines_of(run_well({"streams", "list", "--db", db_, "--json"}));
  ASSERT_THAT(streams, SizeIs(2));
  EXPECT_EQ(member(streams[1], "stream"), "order-1");
  EXPECT_EQ(member(streams[1], "stream_version"), "2");
  EXPECT_THAT(lines_of(run_well({"streams", "list", "--db", db_, "--json", "--category", "bill"})),
              SizeIs(1));
  EXPECT_THAT(lines_of(run_well({"streams", "list", "--db", db_, "--json", "--after", "bill-1"})),
              SizeIs(1));
  append("order-1", "{}", {"--tag", "customer-" + std::string(150, 'c')});
  const std::string timeline = run_well({"streams", "show", "order-1", "--db", db_});
  EXPECT_THAT(timeline, HasSubstr("ada"));
  EXPECT_THAT(timeline, HasSubstr("customer-" + std::string(150, 'c'))) << "beneath its row";
  EXPECT_THAT(timeline, Not(HasSubstr(std::string(60, ' ')))) << "no other row is that wide";
  EXPECT_EQ(run({"streams", "show", "order-9", "--db", db_}).code, 3);
}

TEST_F(ToolEvents, ExportsImportsAndBacksUp) {
  append("order-1", "{\"a\":1}");
  append("order-2", "{}");
  run_well({"export", "--db", db_, dir_.file("shop.jsonl")});
  EXPECT_EQ(run({"export", "--db", db_, dir_.file("shop.jsonl")}).code, 1);
  const std::string copy = dir_.file("copy.db");
  run_well({"migrate", "--db", copy});
  const std::string imported =
      run_well({"import", "--db", copy, "--json", dir_.file("shop.jsonl")});
  EXPECT_EQ(member(imported, "imported"), "2");
  EXPECT_EQ(run_well({"export", "--db", copy}), run_well({"export", "--db", db_}));
  EXPECT_EQ(member(run_well({"verify", "--db", copy, "--json"}), "sound"), "true");

  run_well({"backup", "--db", db_, dir_.file("backup.db")});
  EXPECT_EQ(run_well({"export", "--db", dir_.file("backup.db")}),
            run_well({"export", "--db", db_}));
}

mode_t mode_of(const std::string& path) {
  struct stat file {};
  EXPECT_EQ(stat(path.c_str(), &file), 0) << path;
  return file.st_mode & 07777;
}

gid_t group_of(const std::string& path) {
  struct stat file {};
  EXPECT_EQ(stat(path.c_str(), &file), 0) << path;
  return file.st_gid;
}

TEST_F(ToolEvents, ExportsAndBackupsHaveTheModeOfTheStore) {
  append("order-1", "{}");
  for (const mode_t mode : {0600, 0660, 0644}) {
    const std::string name = dir_.file("mode-" + std::to_string(mode));
    ASSERT_EQ(chmod(db_.c_str(), mode), 0);

    run_well({"export", "--db", db_, name});
    run_well({"backup", "--db", db_, name + ".db"});

    EXPECT_EQ(mode_of(name), mode);
    EXPECT_EQ(mode_of(name + ".db"), mode);
  }
}

TEST_F(ToolEvents, ExportsAndBackupsShowAGroupNothingThatTheStoreHidesFromIt) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  append("order-1", "{}");
  constexpr gid_t group_of_store = 65'533;
  ASSERT_EQ(chmod(dir_.path().c_str(), 01777), 0);
  for (const auto& file : std::filesystem::directory_iterator{dir_.path()}) {
    ASSERT_EQ(chown(file.path().c_str(), 65'534, group_of_store), 0);
    ASSERT_EQ(chmod(file.path().c_str(), 0640), 0);
  }

  for (const std::string command : {"export", "backup"}) {
    const std::string of_root = dir_.file(command + "-of-root");
    run_well({command, "--db", db_, of_root});
    EXPECT_EQ(mode_of(of_root), 0640U) << command;
    EXPECT_EQ(group_of(of_root), group_of_store) << command;

    const std::string of_another = dir_.file(command + "-of-another");
    const Ran ran = run_unprivileged({command, "--db", db_, of_another});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(mode_of(of_another), 0600U) << command << ": it isn't in that group";
  }
}

TEST_F(ToolEvents, ExportsTouchNoFileButTheirOwn) {
  append("order-1", "{}");
  const std::string name = dir_.file("shop.jsonl");
  std::filesystem::create_symlink(dir_.file("elsewhere"), name + ".partial");

  run_well({"export", "--db", db_, name});

  EXPECT_TRUE(std::filesystem::is_symlink(name + ".partial"));
  EXPECT_FALSE(std::filesystem::exists(dir_.file("elsewhere")));
}

TEST_F(ToolEvents, TellATerminalNothingThatItWouldObey) {
  // A control sequence of one byte, its two bytes, and the marks that turn the direction.
  const std::string harm =
      "\xc2\x9b"
      "31m \xe2\x80\xae \xe2\x81\xa6 \x7f";
  append("order-1", "{\"note\":\"" + harm + "\"}", {"--actor", "ada \xe2\x80\xae"});

  const std::vector<std::vector<std::string>> commands = {
      {"export"},
      {"export", "--whole"},
      {"events", "list"},
      {"events", "show", "1"},
      {"streams", "show", "order-1"},
      {"events", "list", "--json"},
      {"events", "query", "--type", "order.placed"},
      {"events", "show", "1", "--json"}};
  for (std::vector<std::string> words : commands) {
    words.insert(words.end(), {"--db", db_, "--no-color"});
    const std::string shown = run(words, {.in_terminal = true}).out;
    EXPECT_THAT(shown, HasSubstr("\\u")) << words[0] << ' ' << words[1];
    for (const char* const each : {"\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6", "\x7f", "\x1b"}) {
      EXPECT_THAT(shown, Not(HasSubstr(each))) << words[0] << ' ' << words[1];
    }
  }
  EXPECT_THAT(run_well({"export", "--db", db_}), HasSubstr(harm)) << "byte for byte elsewhere";
}

TEST_F(ToolEvents, ABadLineOfAnImportKeepsEarlierLines) {
  append("order-1", "{}");
  const std::string lines = run_well({"export", "--db", db_});
  const std::string copy = dir_.file("copy.db");
  run_well({"migrate", "--db", copy});
  const Ran ran = run({"import", "--db", copy}, {.input = lines + "{\"sequence\":\n"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("line 3"));
}

TEST_F(ToolEvents, ImportSaysThatAFolderIsNoFile) {
  const std::string copy = dir_.file("copy.db");
  run_well({"migrate", "--db", copy});
  const Ran ran = run({"import", "--db", copy, dir_.path().string()});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err, HasSubstr("can't be read: it is a folder"));
}

TEST_F(ToolEvents, VerifyFindsDamageAndAdvises) {
  append("order-1", "{}");
  RawSqlite raw{db_};
  raw.drop_triggers();
  raw.run("UPDATE events SET payload = x'7b7e7d'");
  const Ran ran = run({"verify", "--db", db_});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("event 1: "));
  EXPECT_THAT(ran.out, HasSubstr("backup"));
}

TEST_F(ToolEvents, VerifyNamesTheTablesOfAnApplicationThatItCantCheck) {
  append("order-1", "{}");
  RawSqlite{db_}.run(
      "CREATE TABLE parents (id INTEGER);"
      "CREATE TABLE children (parent INTEGER REFERENCES parents (id))");
  EXPECT_EQ(run_well({"verify", "--db", db_}),
            "table children not checked: foreign key mismatch - \"children\" referencing "
            "\"parents\"\n1 event checked, no problem.\n");
  EXPECT_THAT(run_well({"verify", "--db", db_, "--json"}),
              HasSubstr(R"("sound":true,"unchecked":[{"table":"children","why":"foreign key )"));
}

TEST_F(ToolEvents, DoctorAdvises) {
  const std::string report = run_well({"doctor", "--db", db_, "--json"});
  EXPECT_THAT(report, HasSubstr(R"({"code":"sqlite","severity":)"));
  EXPECT_THAT(report, HasSubstr(R"("code":"space")"));
  EXPECT_THAT(report, HasSubstr("journal_mode wal, page_size 4096, encoding UTF-8"));
  run_well({"outbox", "enable", "--db", db_, "--from-now"});
  append("order-1", "{}", {"--publish"});
  const Ran ran = run({"doctor", "--db", db_, "--nats", "nats://127.0.0.1:1"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(
      ran.out,
      HasSubstr("critical outbox_unattended: 1 message is pending, and there is no live worker"));
  EXPECT_THAT(ran.out, HasSubstr("critical broker_unreached: "));
  EXPECT_THAT(ran.out, HasSubstr("messages stay pending, none is lost"));
}

TEST_F(ToolEvents, DoctorSaysWhatLookUpsByCorrelationMiss) {
  append("order-1", "{}");
  EXPECT_THAT(run_well({"doctor", "--db", db_}),
              HasSubstr("ok       links: 1 event isn't indexed by correlation and cause"));
  run_well({"index", "build", "--db", db_});
  EXPECT_THAT(run_well({"doctor", "--db", db_}), HasSubstr("links: all events are indexed"));
  RawSqlite raw{db_};
  raw.drop_triggers();
  raw.run("UPDATE events SET sequence = 1000005");

  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              AllOf(HasSubstr("warning  links: 1,000,004 events aren't indexed"),
                    HasSubstr("→ 'stela index build'")));
}

TEST_F(ToolEvents, AFullStdoutIsAnError) {
  append("order-1", "{}");
  const std::string command = program() + " events list --json --db " + db_ + " > /dev/full";
  EXPECT_EQ(WEXITSTATUS(std::system((command + " 2> /dev/null").c_str())), 1);
}

TEST_F(ToolEvents, ExportSkipsDamagedEventsOnRequest) {
  for (int i = 0; i < 4; ++i) append("order-1", "{}");
  const std::string whole = run_well({"export", "--db", db_});
  RawSqlite raw{db_};
  raw.drop_triggers();
  raw.run("UPDATE events SET payload = x'00' WHERE sequence = 2");

  const std::string advice = run({"verify", "--db", db_}).out;
  EXPECT_THAT(advice, HasSubstr("'export --skip-damaged' saves what can still be read"));
  EXPECT_EQ(run({"export", "--db", db_}).code, 1);
  const std::string file = dir_.file("saved.jsonl");
  const Ran ran = run({"export", file, "--db", db_, "--skip-damaged"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err,
            "event 2: it doesn't match its checksum\n3 events exported, 1 event can't be read.\n");
  auto expected = lines_of(whole);
  expected.erase(expected.begin() + 2);
  std::ifstream saved{file};
  EXPECT_EQ(lines_of({std::istreambuf_iterator<char>{saved}, {}}), expected);

  EXPECT_EQ(run({"export", "--db", db_, "--skip-damaged", "--from", "3"}).code, 0);
  EXPECT_EQ(run({"export", "--db", db_, "--skip-damaged", "--type", "a.b"}).code, 2);
}

}  // namespace
}  // namespace stela::test::events_test

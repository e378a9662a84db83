// stela privacy subjects, show, export, hold, forget: people, and the keys of what is personal.
#include "tool/privacy.hpp"
#include "console/routes.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace stela::test::privacy_test {
namespace {

using namespace privacy;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ToolPrivacy, ListsPeople) {
  const auto people = lines_of(privacy({"subjects", "--json"}).out);
  ASSERT_EQ(people.size(), 2U);
  EXPECT_EQ(member(people[0], "subject"), "guest-m1");
  EXPECT_EQ(member(people[0], "keys"), "2");
  EXPECT_THAT(people[0], HasSubstr(R"("purposes":[null,"invoices"])"));
  EXPECT_EQ(member(people[1], "subject"), "guest-a1");

  const Ran first = privacy({"subjects", "--limit", "1"});
  EXPECT_THAT(first.out, AllOf(HasSubstr("guest-m1"), HasSubstr("default, invoices")));
  EXPECT_EQ(first.err, "more: --after 1\n");
  EXPECT_THAT(privacy({"subjects", "--after", "1", "--json"}).out,
              AllOf(HasSubstr("guest-a1"), Not(HasSubstr("guest-m1"))));
  EXPECT_EQ(privacy({"subjects", "--destroyed", "--json"}).out, "");
}

TEST_F(ToolPrivacy, NeedsKeysThatAreThere) {
  const Ran unnamed = run({"privacy", "subjects"});
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_THAT(unnamed.err, HasSubstr("STELA_KEYS_STORE"));
  EXPECT_NE(run({"privacy", "subjects", "--keys", dir_.file("none")}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("none")));
  const std::string master = dir_.file("other.master");
  std::ofstream{master} << std::string(32, 'x');
  ::chmod(master.c_str(), 0600);
  EXPECT_NE(run({"privacy", "subjects", "--keys", keys_, "--master", master}).code, 0);
}

TEST_F(ToolPrivacy, ShowsAPerson) {
  const std::string text = privacy({"show", "guest-m1"}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("guest-m1: living"), HasSubstr("invoices")));
  const std::string json = privacy({"show", "guest-m1", "--json"}).out;
  EXPECT_EQ(member(json, "state"), "living");
  EXPECT_EQ(member(json, "newest_key"), "3");
  EXPECT_EQ(privacy({"show", "guest-x"}).code, 3);
}

TEST_F(ToolPrivacy, ExportsWhatIsOfOnePersonAndNothingOfOthers) {
  const auto lines = lines_of(privacy({"export", "guest-m1"}).out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], AllOf(HasSubstr(R"("address":"Elm St 1")"), HasSubstr("1970")));
  EXPECT_EQ(member(lines[0], "type"), "guest.moved");
  EXPECT_EQ(member(lines[2], "stream"), "gift-1");
  EXPECT_THAT(lines[2], AllOf(HasSubstr("Elm St 9"), Not(HasSubstr("Love"))));

  const std::string file = dir_.file("m1.jsonl");
  ASSERT_EQ(privacy({"export", "guest-m1", "--to", file}).code, 0);
  struct stat facts {};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  std::stringstream text;
  text << std::ifstream{file}.rdbuf();
  EXPECT_EQ(lines_of(text.str()), lines);
  EXPECT_EQ(privacy({"export", "guest-m1", "--to", file}).code, 1) << "it is there already";
  const std::string log = run_well({"log", "--db", db_, "--json"});
  EXPECT_THAT(log, HasSubstr("exports"));
  expect_nobody(log);
}

TEST_F(ToolPrivacy, ForgetsAfterAPlan) {
  const std::string plan = privacy({"forget", "guest-m1", "--reason", "Art. 17", "--dry-run"}).out;
  EXPECT_THAT(plan, AllOf(HasSubstr("2 keys would be destroyed, and what 3 events have of them"),
                          HasSubstr("Not reached:")));
  EXPECT_EQ(privacy({"forget", "guest-m1", "--reason", "Art. 17"}).code, 2) << "nobody is asked";
  EXPECT_EQ(privacy({"forget", "guest-m1", "--yes"}).code, 2) << "a reason is needed";
  EXPECT_EQ(lines_of(privacy({"subjects", "--json"}).out).size(), 2U);

  const Ran done = privacy({"forget", "guest-m1", "--reason", "Art. 17", "--by", "dpo-7", "--yes"});
  EXPECT_EQ(done.code, 0) << done.err;
  expect_nobody(done.out);
  EXPECT_EQ(lines_of(privacy({"subjects", "--json"}).out).size(), 1U);
  EXPECT_EQ(lines_of(privacy({"subjects", "--destroyed", "--json"}).out).size(), 2U);
  EXPECT_THAT(privacy({"export", "guest-m1"}).out,
              AllOf(Not(HasSubstr("Elm St")), HasSubstr("1970")));
  EXPECT_THAT(privacy({"show", "guest-m1"}).out, HasSubstr("guest-m1: forgotten"));
  EXPECT_EQ(privacy({"forget", "guest-m1", "--reason", "again", "--yes"}).code, 3);
  const std::string log = run_well({"log", "--db", db_, "--json"});
  EXPECT_THAT(log, AllOf(HasSubstr("forgot"), HasSubstr("erasure 5")));
  expect_nobody(log);
  run_well({"export", dir_.file("shop.jsonl"), "--db", db_});
  run_well({"migrate", "--db", dir_.file("copy.db")});
  run_well({"import", dir_.file("shop.jsonl"), "--db", dir_.file("copy.db")});
  EXPECT_EQ(run_well({"events", "head", "--db", dir_.file("copy.db")}), "head: 5\n")
      << "a fence is moved as any event";
}

TEST_F(ToolPrivacy, ForgetsOnePurpose) {
  const Ran ran =
      privacy({"forget", "guest-m1", "--reason", "r", "--purpose", "", "--yes", "--json"});
  EXPECT_EQ(member(ran.out, "events"), "2");
  EXPECT_EQ(member(ran.out, "dry_run"), "false");
  EXPECT_THAT(privacy({"export", "guest-m1"}).out,
              AllOf(HasSubstr("Elm St 1"), Not(HasSubstr("Elm St 9"))));
  EXPECT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--purpose", "x", "--yes"}).code, 3);
}

TEST_F(ToolPrivacy, TakesNoOtherStoresKeys) {
  const std::string other = dir_.file("other.keys.db");
  open_keys(other).key_of({"guest-x", ""});
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--yes"}).code, 0);
  const std::vector<std::vector<std::string>> commands = {
      {"show", "guest-a1"},
      {"export", "guest-a1"},
      {"forget", "guest-a1", "--reason", "r", "--dry-run"},
      {"hold", "guest-a1", "--reason", "r"},
      {"release", "guest-a1"},
      {"rotate"},
      {"report", "guest-m1"},
      {"reapply", "--dry-run"}};
  for (std::vector<std::string> words : commands) {
    const std::string name = words.front();
    words.insert(words.end(), {"--keys", other, "--erasures", other + ".erasures"});
    const Ran ran = privacy(words);
    EXPECT_EQ(ran.code, 1) << name;
    EXPECT_THAT(ran.err, HasSubstr("and the events were written with")) << name;
  }
  EXPECT_EQ(member(privacy({"report", "guest-m1", "--json"}).out, "certain_at"), "null");
}

TEST_F(ToolPrivacy, NamesTheDefaultPurposeAsItShowsIt) {
  EXPECT_EQ(privacy({"hold", "guest-m1", "--purpose", "default", "--reason", "court"}).code, 0);
  EXPECT_THAT(privacy({"hold", "guest-m1", "--purpose", "defualt", "--reason", "court"}).err,
              HasSubstr("There is no key of this person for purpose 'defualt' yet"));
  const std::string forgot =
      privacy({"forget", "guest-m1", "--reason", "r", "--yes", "--json"}).out;
  EXPECT_THAT(forgot, HasSubstr("\"held_because\":\"court\""));
  EXPECT_THAT(privacy({"export", "guest-m1"}).out, HasSubstr("Elm St 9"));
}

TEST_F(ToolPrivacy, TakesNoKeysInUseForANewStore) {
  const std::string other = dir_.file("other.db");
  run_well({"migrate", "--db", other});
  const std::vector<std::vector<std::string>> commands = {
      {"rotate"}, {"reapply", "--yes"}, {"forget", "guest-a1", "--reason", "r", "--yes"}};
  for (std::vector<std::string> words : commands) {
    const std::string name = words.front();
    words.insert(words.end(), {"--db", other});
    const Ran ran = privacy(words);
    EXPECT_EQ(ran.code, 2) << name;
    EXPECT_THAT(ran.err, HasSubstr("it is another store's")) << name;
  }
  EXPECT_EQ(lines_of(privacy({"subjects", "--json"}).out).size(), 2U);
}

TEST_F(ToolPrivacy, SaysThatSomebodyWasForgottenBefore) {
  {
    Keys keys = open_keys(keys_, {.erasures = erasures_});
    Store store = stela::open(db_, {.keys = &keys});
    const Outbox outbox{store};
    stela::forget(store, margaret.stream(), {.by = "dpo-7", .reason = "r"});
  }
  const Ran again = privacy({"forget", "guest-m1", "--reason", "r", "--yes"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("Event 5 has forgotten this person, and no key is left"));
  EXPECT_THAT(run_well({"log", "--db", db_, "--json"}), HasSubstr("erasure 5"));
}

TEST_F(ToolPrivacy, LeavesWhatIsHeld) {
  EXPECT_EQ(privacy({"hold", "guest-m1", "--purpose", "invoices"}).code, 2) << "a reason is needed";
  EXPECT_EQ(privacy({"hold", "guest-m1", "--purpose", "invoices", "--reason", "r", "--until",
                     "2001-01-01"})
                .code,
            2);
  const Ran held = privacy({"hold", "guest-m1", "--purpose", "invoices", "--reason", "tax law",
                            "--until", "2099-12-31"});
  EXPECT_THAT(held.out, HasSubstr("stays until 2099-12-31"));
  EXPECT_THAT(privacy({"show", "guest-m1"}).out, HasSubstr("tax law"));

  const std::string forgot =
      privacy({"forget", "guest-m1", "--reason", "r", "--yes", "--json"}).out;
  EXPECT_THAT(forgot, AllOf(HasSubstr(R"("kept":[{"key":3)"), HasSubstr("tax law")));
  const Ran again = privacy({"forget", "guest-m1", "--reason", "r", "--yes"});
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.err, HasSubstr("all of it is held"));

  EXPECT_EQ(privacy({"release", "guest-m1", "--purpose", "invoices"}).code, 0);
  EXPECT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--yes"}).code, 0);
  EXPECT_THAT(privacy({"show", "guest-m1"}).out, HasSubstr("guest-m1: forgotten"));
  const std::string log = run_well({"log", "--db", db_, "--json"});
  EXPECT_THAT(log, AllOf(HasSubstr("holds"), HasSubstr("released")));
  expect_nobody(log);
}

TEST_F(ToolPrivacy, TakesNoPersonalTextFromStdin) {
  const Ran moved =
      run({"events", "append", "--db", db_, "--stdin"},
          {.input = R"({"stream":"guest-m1","type":"guest.moved","data":{"address":"x"}})"});
  EXPECT_NE(moved.code, 0);
  EXPECT_THAT(moved.err, HasSubstr("have personal fields"));
  const Ran fence = run({"events", "append", "--db", db_, "--stream", "forgotten-guest-a1",
                         "--type", "stela.forgotten", "--data", "{}"});
  EXPECT_NE(fence.code, 0);
}

TEST_F(ToolPrivacy, CantBeReachedFromTheConsole) {
  for (const tool::Route& route : tool::all_routes()) {
    EXPECT_FALSE(route.command.starts_with("privacy")) << route.command;
  }
  for (const tool::Action& action : tool::all_actions()) {
    EXPECT_FALSE(action.command.starts_with("privacy")) << action.command;
  }
}

}  // namespace
}  // namespace stela::test::privacy_test

// stela privacy rotate and report, and the doctor: since when an erasure is certain.
#include "support/raw_sqlite.hpp"
#include "tool/privacy.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace stela::test::privacy_report_test {
namespace {

using namespace privacy;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(ToolPrivacy, ReportsOnlyRotationsThatThisKeyStoreHasSeen) {
  const auto over = std::filesystem::copy_options::overwrite_existing;
  const auto certain_at = [&] {
    return member(privacy({"report", "guest-m1", "--json"}).out, "certain_at");
  };
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--yes"}).code, 0);
  std::filesystem::copy_file(keys_, dir_.file("backup"));
  ASSERT_EQ(privacy({"rotate"}).code, 0);
  const std::string first = certain_at();
  EXPECT_THAT(first, StartsWith("2"));
  std::filesystem::copy_file(dir_.file("backup"), keys_, over);
  EXPECT_EQ(certain_at(), "null");
  EXPECT_THAT(privacy({"show", "guest-m1"}).out, HasSubstr("The keys were never rotated"));
  ASSERT_EQ(privacy({"rotate"}).code, 0);
  EXPECT_GT(certain_at(), first);

  // Nor does a clock that was ahead.
  RawSqlite{keys_}.run("UPDATE key_rotations SET began_at = began_at + 3600000000");
  ASSERT_EQ(privacy({"forget", "guest-a1", "--reason", "r", "--yes"}).code, 0);
  EXPECT_EQ(member(privacy({"report", "guest-a1", "--json"}).out, "certain_at"), "null");

  // Another copy's rotation says nothing of this one.
  std::filesystem::copy_file(dir_.file("backup"), keys_, over);
  std::filesystem::copy_file(keys_ + ".master", dir_.file("backup.master"));
  ::chmod(dir_.file("backup.master").c_str(), 0600);
  ASSERT_EQ(privacy({"rotate", "--keys", dir_.file("backup")}).code, 0);
  EXPECT_EQ(certain_at(), "null");
}

TEST_F(ToolPrivacy, ReportsTheKeysThatWereThePersonsAlone) {
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--yes"}).code, 0);
  const std::string destroyed =
      member(lines_of(privacy({"subjects", "--destroyed", "--json"}).out).front(), "key_id");
  {
    Keys keys = open_keys(keys_, {.erasures = erasures_});
    Store store = stela::open(db_, {.keys = &keys});
    const Outbox outbox{store};
    UnitOfWork unit{store};
    const StreamId forged = StreamId::parse("forgotten-guest-a1");
    unit.append(forged, ExpectedVersion::any(), Forgotten{.by = "mallory", .reason = "none"});
    unit.append(forged, ExpectedVersion::any(),
                Forgotten{.keys = {destroyed}, .purposes = {""}, .by = "mallory"});
    unit.commit();
  }
  ASSERT_EQ(privacy({"rotate"}).code, 0);
  const auto reports = lines_of(privacy({"report", "guest-a1", "--json"}).out);
  ASSERT_EQ(reports.size(), 2U);
  for (const std::string& report : reports) {
    EXPECT_EQ(member(report, "destroyed"), "false");
    EXPECT_EQ(member(report, "certain_at"), "null");
    EXPECT_EQ(member(report, "living_keys"), "1");
  }
  EXPECT_THAT(privacy({"report", "guest-a1"}).out, HasSubstr("Of this person 1 key lives"));
  EXPECT_THAT(privacy({"show", "guest-a1"}).out, HasSubstr("guest-a1: living"));
}

TEST_F(ToolPrivacy, IsNotKeptFromForgettingByAnEventThatIsNoErasure) {
  {
    Keys keys = open_keys(keys_, {.erasures = erasures_});
    Store store = stela::open(db_, {.keys = &keys});
    const Outbox outbox{store};
    const std::vector<KeyInfo> anns = keys.keys_of("guest-a1");
    UnitOfWork unit{store};
    const StreamId forged = StreamId::parse("forgotten-guest-a1");
    unit.append(forged, ExpectedVersion::any(), NoErasure{});
    unit.append(
        forged, ExpectedVersion::any(),
        Forgotten{.keys = {anns.front().id.to_string()}, .purposes = {""}, .by = "mallory"});
    unit.commit();
  }
  EXPECT_EQ(privacy({"show", "guest-a1"}).code, 0);
  EXPECT_EQ(privacy({"forget", "guest-a1", "--reason", "r", "--by", "dpo-7", "--yes"}).code, 0);
  ASSERT_EQ(privacy({"rotate"}).code, 0);
  const auto reports = lines_of(privacy({"report", "guest-a1", "--json"}).out);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(member(reports[0], "by"), "mallory");
  EXPECT_EQ(member(reports[0], "certain_at"), "null") << "another event forgot her";
  EXPECT_EQ(member(reports[1], "by"), "dpo-7");
  EXPECT_THAT(member(reports[1], "certain_at"), StartsWith("2"));
}

TEST_F(ToolPrivacy, KnowsOfWhomAnOlderStoreHasNoEvent) {
  run_well({"backup", dir_.file("backup.db"), "--db", db_});
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--yes"}).code, 0);
  for (const char* const end : {"-wal", "-shm"}) std::filesystem::remove(db_ + end);
  std::filesystem::copy_file(dir_.file("backup.db"), db_,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(privacy({"show", "guest-m1"}).out,
              AllOf(HasSubstr("guest-m1: forgotten"), HasSubstr("the store has no event of it")));
  const std::string report = privacy({"report", "guest-m1", "--json"}).out;
  EXPECT_EQ(member(report, "destroyed"), "true");
  EXPECT_EQ(member(report, "erasure"), "null");
  const Ran rotated = privacy({"rotate"});
  EXPECT_EQ(rotated.code, 1);
  EXPECT_THAT(rotated.err, HasSubstr("the store doesn't know of 2 destroyed keys"));
  EXPECT_THAT(privacy({"report", "guest-m1"}).out,
              HasSubstr("The store doesn't have it as forgotten by this event"));
  ASSERT_EQ(privacy({"reapply", "--yes"}).code, 0);
  EXPECT_THAT(member(privacy({"report", "guest-m1", "--json"}).out, "certain_at"), StartsWith("2"));
  EXPECT_THAT(privacy({"report", "guest-m1"}).out,
              HasSubstr("The store knows of it from the key store"));
}

TEST_F(ToolPrivacy, RotatesToAnotherMasterKey) {
  const std::string master = dir_.file("new.key");
  const Ran missing = privacy({"rotate", "--new-master", master});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("there is no file '" + master + "'; make one"));
  EXPECT_EQ(open_keys(keys_, {.erasures = erasures_}).standing().rotation, 1);
  std::ofstream{master} << std::string(32, 'n');
  ::chmod(master.c_str(), 0600);
  std::filesystem::copy_file(keys_ + ".master", dir_.file("same.key"));
  ::chmod(dir_.file("same.key").c_str(), 0600);
  const Ran same = privacy({"rotate", "--new-master", dir_.file("same.key")});
  EXPECT_EQ(same.code, 2);
  EXPECT_THAT(same.err, HasSubstr("has the present master key"));
  EXPECT_EQ(open_keys(keys_, {.erasures = erasures_}).standing().rotation, 1);
  const Ran changed = privacy({"rotate", "--new-master", master});
  EXPECT_EQ(changed.code, 0);
  EXPECT_THAT(changed.err,
              AllOf(HasSubstr("becomes the master key now. Keep the former one, too"),
                    HasSubstr("is the master key; nothing opens the key store without it")));
  EXPECT_EQ(privacy({"subjects"}).code, 1);
  EXPECT_EQ(lines_of(privacy({"subjects", "--master", master, "--json"}).out).size(), 2U);
}

TEST_F(ToolPrivacy, ReportsSinceWhenItIsCertain) {
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "Art. 17", "--by", "dpo-7", "--yes"}).code,
            0);
  const std::string before = privacy({"report", "guest-m1", "--json"}).out;
  EXPECT_EQ(member(before, "certain_at"), "null");
  EXPECT_EQ(member(before, "destroyed"), "true");
  EXPECT_EQ(member(before, "by"), "dpo-7");
  EXPECT_EQ(member(before, "publication"), "pending");
  EXPECT_EQ(member(before, "why"), "Art. 17");
  EXPECT_THAT(privacy({"report", "guest-m1"}).out, HasSubstr("not yet"));
  expect_nobody(before);

  const Ran rotated = privacy({"rotate", "--json"});
  EXPECT_EQ(member(rotated.out, "rewrapped"), "1");
  const std::string after = privacy({"report", "--erasure", "5", "--json"}).out;
  EXPECT_THAT(member(after, "certain_at"), StartsWith("2"));
  EXPECT_EQ(member(after, "binding"), member(before, "binding"));
  ASSERT_EQ(privacy({"rotate"}).code, 0);
  EXPECT_EQ(member(privacy({"report", "guest-m1", "--json"}).out, "certain_at"),
            member(after, "certain_at"))
      << "the first one says it";

  EXPECT_EQ(privacy({"report", "guest-a1"}).code, 3);
  EXPECT_EQ(privacy({"report", "--erasure", "1"}).code, 3);
  EXPECT_EQ(privacy({"report"}).code, 2);
}

TEST_F(ToolPrivacy, IsNotPassedOverByADoctorWithoutKeys) {
  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              HasSubstr("not checked, and events have sealed fields"));
  EXPECT_EQ(run({"doctor", "--db", db_, "--master", dir_.file("m")}).code, 2);
}

TEST_F(ToolPrivacy, SaysAFewThingsOnlyOfAForeignFileOfErasures) {
  {
    std::ofstream file{erasures_, std::ios::app};
    for (int i = 0; i < 100; ++i) file << "rubbish\n";
  }
  const std::string out = run({"doctor"}, {.environment = environment()}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("line 1 was changed"), HasSubstr("and more is wrong with it"),
                         Not(HasSubstr("line 20 "))));
}

TEST_F(ToolPrivacy, IsLookedAtByTheDoctor) {
  const auto doctor = [&] { return run({"doctor"}, {.environment = environment()}).out; };
  EXPECT_THAT(doctor(), AllOf(HasSubstr("in the folder of the key store: the master key"),
                              HasSubstr("the key store is this store's"),
                              Not(HasSubstr("seems to have an e-mail address"))));
  run_well({"events", "append", "--db", db_, "--stream", "customer-ann@example.org", "--type",
            "customer.came", "--data", "{}"});
  EXPECT_THAT(run({"doctor", "--db", db_}).out,
              AllOf(HasSubstr("event 5 seems to have an e-mail address in the name of its stream"),
                    Not(HasSubstr("key store"))));

  EXPECT_THAT(doctor(), HasSubstr("the keys were never rotated"));
  ASSERT_EQ(privacy({"forget", "guest-a1", "--reason", "r", "--yes"}).code, 0);
  EXPECT_THAT(doctor(), HasSubstr("the keys were never rotated")) << "it isn't a week yet";
  RawSqlite{keys_}.run("UPDATE key_encryption_keys SET made_at = made_at - 8 * 86400000000");
  EXPECT_THAT(doctor(), HasSubstr("somebody was forgotten since the keys were rotated, 8 d"));

  ::chmod((keys_ + ".master").c_str(), 0644);
  const Ran readable = run({"doctor"}, {.environment = environment()});
  EXPECT_EQ(readable.code, 1);
  EXPECT_THAT(readable.out, HasSubstr("critical"));
  ::chmod((keys_ + ".master").c_str(), 0600);

  Keys keys = open_keys(dir_.file("other.keys.db"));
  EXPECT_THAT(run({"doctor", "--db", db_, "--keys", dir_.file("other.keys.db")}).out,
              HasSubstr("and the events were written with"));
}

}  // namespace
}  // namespace stela::test::privacy_report_test

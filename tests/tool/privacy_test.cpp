// stela privacy: people, and the keys of what is personal.
#include "console/routes.hpp"
#include "nats/jetstream.hpp"
#include "nats/wire_client.hpp"
#include "support/nats_server.hpp"
#include "support/raw_sqlite.hpp"
#include "support/silent_server.hpp"
#include "support/temp_dir.hpp"
#include "tool/kept_errors.hpp"
#include "tool/program.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/outbox.hpp>
#include <stela/privacy.hpp>
#include <stela/projections/projections.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace stela::test::privacy_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Guest {
  static constexpr std::string_view category = "guest";
};
struct Moved {
  static constexpr EventType event_type{"guest.moved", 1, local};
  Personal<std::string> address;
  std::int32_t since = 0;
  static constexpr auto subject = stream_is_subject;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(address), CEREAL_NVP(since));
  }
};
struct InvoiceSent {
  static constexpr EventType event_type{"guest.invoice_sent", 1, local};
  Personal<std::string> address;
  static constexpr auto subject = personal(stream_is_subject, "invoices");
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(address));
  }
};
struct GiftSent {
  static constexpr EventType event_type{"gift.sent", 1, local};
  Id<Guest> from, to;
  Personal<std::string, &GiftSent::to> address;
  Personal<std::string, &GiftSent::from> greeting;
  static constexpr auto subject = &GiftSent::to;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(from), CEREAL_NVP(to), CEREAL_NVP(address), CEREAL_NVP(greeting));
  }
};

/// What a message that somebody forged may be once it is imported.
struct NoErasure {
  static constexpr EventType event_type{"stela.forgotten", 1, local};
  template <class Archive>
  void serialize(Archive& /*archive*/) {}
};

const Id<Guest> margaret = Id<Guest>::from("m1");
const Id<Guest> ann = Id<Guest>::from("a1");

class ToolPrivacy : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(dir_.file("keys"));
    Keys keys = open_keys(keys_, {.erasures = erasures_});
    Store store = stela::open(db_, {.keys = &keys});
    const Outbox outbox{store};
    UnitOfWork unit{store};
    const auto any = ExpectedVersion::any();
    unit.append(margaret.stream(), any, Moved{"Elm St 1", 1970});
    unit.append(ann.stream(), any, Moved{"Oak St 2", 1980});
    unit.append(margaret.stream(), any, InvoiceSent{"Elm St 1"});
    unit.append(StreamId::parse("gift-1"), any, GiftSent{ann, margaret, "Elm St 9", "Love, Ann"});
    unit.commit();
  }
  Ran privacy(std::vector<std::string> words) const {
    words.insert(words.begin(), "privacy");
    return run(words, {.environment = environment()});
  }
  std::map<std::string, std::string> environment() const {
    return {{"STELA_DB", db_}, {"STELA_KEYS_STORE", keys_}, {"STELA_KEYS_ERASURES", erasures_}};
  }
  /// Everything that the command has printed must not have.
  static void expect_nobody(const std::string& text) {
    for (const char* const canary : {"Elm St", "Oak St", "Love", "guest-m1"}) {
      EXPECT_THAT(text, Not(HasSubstr(canary)));
    }
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
  std::string keys_ = dir_.file("keys/shop.keys.db");
  std::string erasures_ = dir_.file("erasures");
};

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

TEST_F(ToolPrivacy, ExportsNothingOfWhomTheStoreHasForgotten) {
  std::filesystem::copy_file(keys_, dir_.file("backup"));
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--yes"}).code, 0);
  std::filesystem::copy_file(dir_.file("backup"), keys_,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(erasures_);
  EXPECT_THAT(privacy({"show", "guest-m1"}).out,
              AllOf(HasSubstr("guest-m1: forgotten"),
                    HasSubstr("2 keys of what was forgotten can still or again be had")));
  EXPECT_EQ(member(privacy({"show", "guest-m1", "--json"}).out, "brought_back"), "2");
  const Ran rotated = privacy({"rotate"});
  EXPECT_EQ(rotated.code, 1);
  EXPECT_THAT(rotated.err, HasSubstr("2 keys of people who were forgotten can be had again"));
  EXPECT_THAT(privacy({"export", "guest-m1"}).out,
              AllOf(HasSubstr("1970"), Not(HasSubstr("Elm St"))));
}

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

TEST_F(ToolPrivacy, RotatesToAnotherMasterKey) {
  const std::string master = dir_.file("new.key");
  const Ran missing = privacy({"rotate", "--new-master", master});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("there is no file '" + master + "'; make one"));
  EXPECT_EQ(open_keys(keys_, {.erasures = erasures_}).standing().rotation, 1);
  std::ofstream{master} << std::string(32, 'n');
  ::chmod(master.c_str(), 0600);
  const Ran changed = privacy({"rotate", "--new-master", master});
  EXPECT_EQ(changed.code, 0);
  EXPECT_THAT(changed.err, HasSubstr("is the master key; nothing opens the key store without it"));
  EXPECT_EQ(privacy({"subjects"}).code, 1);
  EXPECT_EQ(lines_of(privacy({"subjects", "--master", master, "--json"}).out).size(), 2U);
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

TEST_F(ToolPrivacy, AppliesErasuresAgain) {
  std::filesystem::copy_file(keys_, dir_.file("backup"));
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "Art. 17", "--yes"}).code, 0);
  EXPECT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "destroyed"), "0");
  std::filesystem::copy_file(dir_.file("backup"), keys_,
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::rename(erasures_, dir_.file("erasures.old"));

  EXPECT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "destroyed"), "2");
  EXPECT_EQ(privacy({"reapply"}).code, 2);
  EXPECT_EQ(member(privacy({"reapply", "--yes", "--json"}).out, "destroyed"), "2");
  EXPECT_EQ(lines_of(privacy({"subjects", "--json"}).out).size(), 1U);
}

class ToolPrivacyOfErrors : public ToolPrivacy {
 protected:
  void SetUp() override {
    ToolPrivacy::SetUp();
    {
      Store store = stela::open(db_);
      nats::migrate_inbox(store);
      const Projections projections{store};
    }
    RawSqlite raw{db_};
    for (const std::string& sql : keep_errors()) raw.run(sql);
  }
  std::string kept(int sequence) const {
    return RawSqlite{db_}.rows(count_kept_errors(sequence)).front();
  }
};

TEST_F(ToolPrivacyOfErrors, ClearsThoseOfThePersonsEvents) {
  EXPECT_EQ(kept(1), "10");
  EXPECT_EQ(privacy({"forget", "guest-m1", "--reason", "Art. 17", "--yes"}).code, 0);
  EXPECT_EQ(kept(1), "0");
  EXPECT_EQ(kept(2), "10") << "of somebody else";
  EXPECT_EQ(RawSqlite{db_}.rows("SELECT error FROM outbox_parked WHERE sequence = 1").front(),
            "(cleared: its subject was forgotten)");
}

TEST_F(ToolPrivacyOfErrors, ClearsThoseOfAForgettingThatWasInterrupted) {
  std::filesystem::copy_file(keys_, dir_.file("backup"));
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "Art. 17", "--yes"}).code, 0);
  std::filesystem::rename(dir_.file("backup"), keys_);
  std::filesystem::remove(erasures_);
  RawSqlite{db_}.run("UPDATE outbox_parked SET error = 'no such house: 1' WHERE sequence = 1");
  EXPECT_EQ(kept(1), "1");
  EXPECT_EQ(privacy({"reapply", "--yes"}).code, 0);
  EXPECT_EQ(kept(1), "0");
}

TEST_F(ToolPrivacyOfErrors, ClearsThoseThatCameBackWithTheStore) {
  run_well({"backup", dir_.file("backup.db"), "--db", db_});
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "Art. 17", "--yes"}).code, 0);
  for (const char* const end : {"-wal", "-shm"}) std::filesystem::remove(db_ + end);
  std::filesystem::copy_file(dir_.file("backup.db"), db_,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(kept(1), "10");
  EXPECT_EQ(privacy({"reapply", "--yes"}).code, 0);
  EXPECT_EQ(kept(1), "0");
  EXPECT_EQ(kept(2), "10") << "of somebody else";
}

TEST_F(ToolPrivacyOfErrors, ClearsThoseThatWereWrittenAfterTheForgetting) {
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "Art. 17", "--yes"}).code, 0);
  for (const char* const command : {"reapply", "rotate"}) {
    RawSqlite{db_}.run("UPDATE outbox_parked SET error = 'no such house: 1' WHERE sequence = 1");
    EXPECT_EQ(kept(1), "1");
    EXPECT_EQ(privacy(command == std::string_view{"reapply"}
                          ? std::vector<std::string>{"reapply", "--yes"}
                          : std::vector<std::string>{"rotate"})
                  .code,
              0);
    EXPECT_EQ(kept(1), "0") << command;
  }
}

TEST_F(ToolPrivacyOfErrors, KeepTheKeysUntilTheyAreCleared) {
  RawSqlite{db_}.run(
      "CREATE TRIGGER obstacle BEFORE UPDATE ON outbox_parked "
      "BEGIN SELECT RAISE(ABORT, 'not now'); END");
  const Ran failing = privacy({"forget", "guest-m1", "--reason", "Art. 17", "--yes"});
  EXPECT_NE(failing.code, 0);
  EXPECT_THAT(failing.err, HasSubstr("the keys are yet to be destroyed"));
  EXPECT_EQ(member(privacy({"report", "guest-m1", "--json"}).out, "destroyed"), "false");
  RawSqlite{db_}.run("DROP TRIGGER obstacle");
  EXPECT_EQ(privacy({"reapply", "--yes"}).code, 0);
  EXPECT_EQ(kept(1), "0");
  EXPECT_EQ(member(privacy({"report", "guest-m1", "--json"}).out, "destroyed"), "true");
}

/// Store, keys and file of erasures are of one backup; only the broker knows of the erasure.
class ToolPrivacyOfABackup : public ToolPrivacy {
 protected:
  void SetUp() override {
    ToolPrivacy::SetUp();
    const auto over = std::filesystem::copy_options::overwrite_existing;
    run_well({"backup", dir_.file("backup.db"), "--db", db_});
    std::filesystem::copy_file(keys_, dir_.file("backup.keys"));
    ASSERT_EQ(privacy({"forget", "guest-m1", "--by", "dpo-7", "--reason", "Art. 17", "--yes"}).code,
              0);
    run_well({"outbox", "work", "--until-empty", "--silent", "--ensure-stream", "--db", db_,
              "--nats", nats_.url(), "--set", "nats.stream=SHOP"});
    for (const char* const end : {"-wal", "-shm"}) std::filesystem::remove(db_ + end);
    std::filesystem::copy_file(dir_.file("backup.db"), db_, over);
    std::filesystem::copy_file(dir_.file("backup.keys"), keys_, over);
    std::filesystem::remove(erasures_);
  }
  Ran reapply(std::vector<std::string> words = {}) const {
    words.insert(words.begin(),
                 {"reapply", "--from-broker", "--nats", nats_.url(), "--stream", "SHOP"});
    return privacy(words);
  }
  std::size_t people() const { return lines_of(privacy({"subjects", "--json"}).out).size(); }

  NatsServer nats_;
};

TEST_F(ToolPrivacyOfABackup, IsNotTakenForForgottenByItsEventAlone) {
  run_well({"outbox", "reconcile", "--from-broker", "--yes", "--db", db_, "--nats", nats_.url(),
            "--stream", "SHOP"});
  EXPECT_EQ(people(), 2U);
  EXPECT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "destroyed"), "2");
  EXPECT_THAT(run({"doctor"}, {.environment = environment()}).out,
              HasSubstr("2 keys of people who were forgotten can be had again"));
  EXPECT_EQ(member(privacy({"reapply", "--yes", "--json"}).out, "destroyed"), "2");
  EXPECT_EQ(people(), 1U);
  EXPECT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "fenced"), "0");
}

TEST_F(ToolPrivacyOfABackup, IsNotForgottenByAnEventIfAHoldKeepsIt) {
  ASSERT_EQ(privacy({"hold", "guest-m1", "--purpose", "default", "--reason", "court"}).code, 0);
  run_well({"outbox", "reconcile", "--from-broker", "--yes", "--db", db_, "--nats", nats_.url(),
            "--stream", "SHOP"});
  const std::string plan = privacy({"reapply", "--dry-run"}).out;
  EXPECT_THAT(plan, HasSubstr("1 key to destroy by event 5, 0 keys to be noted"))
      << "the other purpose's";
  EXPECT_EQ(member(privacy({"reapply", "--yes", "--json"}).out, "destroyed"), "1");
  EXPECT_EQ(people(), 2U);
}

TEST_F(ToolPrivacyOfABackup, IsNotForgottenByAnEventOfSomebodyElse) {
  {
    // What a forged message is once it was read back.
    Keys keys = open_keys(keys_, {.erasures = erasures_});
    Store store = stela::open(db_, {.keys = &keys});
    const Outbox outbox{store};
    const std::vector<KeyInfo> anns = keys.keys_of("guest-a1");
    const std::vector<KeyInfo> margarets = keys.keys_of("guest-m1");
    UnitOfWork unit{store};
    unit.append(StreamId::parse("forgotten-guest-m1"), ExpectedVersion::any(),
                Forgotten{.keys = {margarets.front().id.to_string(), anns.front().id.to_string()},
                          .purposes = {"", ""},
                          .by = "mallory",
                          .reason = "none"});
    unit.commit();
  }
  EXPECT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "destroyed"), "0");
  EXPECT_EQ(member(privacy({"reapply", "--yes", "--json"}).out, "destroyed"), "0");
  EXPECT_EQ(people(), 2U);
}

TEST_F(ToolPrivacyOfABackup, KeepsWhatAHoldKeeps) {
  ASSERT_EQ(privacy({"hold", "guest-m1", "--purpose", "invoices", "--reason", "tax law"}).code, 0);
  const std::string plan = reapply({"--dry-run", "--json"}).out;
  EXPECT_EQ(member(plan, "skipped"), "1");
  EXPECT_THAT(plan, HasSubstr("a hold keeps it"));
  EXPECT_EQ(member(reapply({"--yes", "--json"}).out, "destroyed"), "0");
  EXPECT_EQ(people(), 2U);
}

TEST_F(ToolPrivacyOfABackup, LeavesKeysAloneThatItNeverHad) {
  RawSqlite{keys_}.run("DELETE FROM subject_keys WHERE number = 1");
  const std::string done = reapply({"--yes", "--json"}).out;
  EXPECT_THAT(done, HasSubstr("unknown_keys"));
  EXPECT_EQ(member(done, "fenced"), "1");
  EXPECT_EQ(RawSqlite{db_}.rows("SELECT count(*) FROM stela_forgotten_keys").front(), "1")
      << "it may be anybody's in a newer backup of the key store";
}

TEST_F(ToolPrivacyOfABackup, IsForgottenAsTheBrokerSays) {
  EXPECT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "destroyed"), "0");
  const std::string plan = reapply({"--dry-run", "--json"}).out;
  EXPECT_EQ(member(plan, "messages"), "1");
  EXPECT_THAT(plan, AllOf(HasSubstr(R"("message":"SHOP #1","subject":"guest-m1")"),
                          HasSubstr(R"("by":"dpo-7","why":"Art. 17","keys":2)")));
  const Ran asked = reapply();
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.out, AllOf(HasSubstr("SHOP #1"), HasSubstr("guest-m1"), HasSubstr("invoices")));
  EXPECT_THAT(asked.err, AllOf(HasSubstr("2 keys by 1 message at the broker"),
                               HasSubstr("Whoever may publish"), HasSubstr("--yes")));
  EXPECT_EQ(people(), 2U) << "nobody agreed";

  const std::string done = reapply({"--yes", "--json"}).out;
  EXPECT_EQ(member(done, "destroyed"), "2");
  EXPECT_EQ(member(done, "fenced"), "2");
  EXPECT_EQ(people(), 1U);
  EXPECT_EQ(RawSqlite{db_}.rows("SELECT count(*) FROM stela_forgotten_keys").front(), "2");
  EXPECT_EQ(lines_of(privacy({"subjects", "--destroyed", "--json"}).out).size(), 2U);
  const std::string log = run_well({"log", "--db", db_, "--json"});
  EXPECT_THAT(log, AllOf(HasSubstr("SHOP #1: key "), HasSubstr("2 destroyed, 2 fenced")));
  expect_nobody(log);

  const std::string again = reapply({"--yes", "--json"}).out;
  EXPECT_EQ(member(again, "messages"), "1");
  EXPECT_EQ(member(again, "destroyed"), "0");
}

TEST_F(ToolPrivacyOfABackup, IsForgottenAfterItsEventsWereImported) {
  run_well({"outbox", "reconcile", "--from-broker", "--yes", "--db", db_, "--nats", nats_.url(),
            "--stream", "SHOP"});
  EXPECT_EQ(member(reapply({"--yes", "--json"}).out, "destroyed"), "2");
  EXPECT_THAT(privacy({"show", "guest-m1"}).out, HasSubstr("guest-m1: forgotten"));
}

TEST_F(ToolPrivacyOfABackup, IsForgottenAsARetiredStreamSays) {
  run_well({"outbox", "partitions", "resize", "2", "--db", db_});
  run_well({"outbox", "partitions", "sync", "--prune", "--db", db_});
  EXPECT_EQ(lines_of(run_well({"outbox", "partitions", "list", "--json", "--db", db_})).size(), 2U);
  EXPECT_EQ(member(reapply({"--yes", "--json"}).out, "destroyed"), "2");
}

TEST_F(ToolPrivacyOfABackup, IsNotForgottenAsForgersSay) {
  JetStream broker{nats_.url()};
  WireClient others{nats_.url()};
  const RawMessage genuine = broker.message("SHOP", 1).value();
  const std::string id = genuine.payload.substr(genuine.payload.find('[') + 2, 22);
  const auto forge = [&](const std::string& name, const std::string& value,
                         const std::string& payload) {
    auto headers = genuine.headers;
    std::erase_if(headers, [](const auto& one) { return one.first.starts_with("Nats-"); });
    if (!name.empty()) headers[name] = value;
    std::string head = "NATS/1.0\r\n";
    for (const auto& [key, text] : headers) head += key + ": " + text + "\r\n";
    others.publish(genuine.subject, head + "\r\n", payload);
  };
  const auto of_keys = [](const std::string& keys) {
    return R"({"keys":[)" + keys + R"(],"purposes":[],"by":"x","reason":"y"})";
  };
  broker.erase("SHOP", 1);
  forge("Stela-Store", "00000000-0000-4000-8000-000000000000", genuine.payload);
  forge("ce-subject", "forgotten-guest-a1", genuine.payload);
  forge("ce-subject", "guest-m1", genuine.payload);
  forge("ce-datacontenttype", "text/html", genuine.payload);
  forge("", "", "{");
  forge("", "", of_keys(R"("somebody")"));
  std::string many = '"' + id + '"';
  for (int i = 0; i < 1'000; ++i) many += ",\"" + id + '"';
  forge("", "", of_keys(many));
  forge("", "", of_keys(R"("AAAAAAAAAAAAAAAAAAAAAA")"));

  const std::string plan = reapply({"--dry-run", "--json"}).out;
  EXPECT_EQ(member(plan, "messages"), "8");
  EXPECT_EQ(member(plan, "skipped"), "7");
  EXPECT_THAT(plan, AllOf(HasSubstr("it is of store 0000"), HasSubstr("is of somebody else"),
                          HasSubstr("says of nobody"), HasSubstr("'somebody' isn't the id"),
                          HasSubstr("it names 1001 keys"),
                          HasSubstr(R"("unknown_keys":"AAAAAAAAAAAAAAAAAAAAAA")")));
  EXPECT_EQ(member(reapply({"--yes", "--json"}).out, "destroyed"), "0");
  EXPECT_EQ(people(), 2U);
}

TEST_F(ToolPrivacyOfABackup, EndsWhereTheBrokerDoesNotAnswer) {
  const SilentServer silent{SilentServer::After::info};
  const Ran ran = privacy({"reapply", "--from-broker", "--yes", "--nats", silent.url()});
  EXPECT_EQ(ran.code, 4);
  const Ran missing =
      privacy({"reapply", "--from-broker", "--yes", "--nats", nats_.url(), "--stream", "X"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("no JetStream stream"));
  EXPECT_EQ(people(), 2U);
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

TEST_F(ToolPrivacy, SaysThatARestoredKeyStoreHasKeysThatWereDestroyed) {
  const std::string backup = dir_.file("backup.keys.db");
  std::filesystem::copy_file(keys_, backup);
  ASSERT_EQ(privacy({"forget", "guest-m1", "--reason", "r", "--yes"}).code, 0);
  std::filesystem::remove(keys_ + "-journal");
  std::filesystem::copy_file(backup, keys_, std::filesystem::copy_options::overwrite_existing);

  EXPECT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "destroyed"), "2");
  const Ran doctor = run({"doctor"}, {.environment = environment()});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, AllOf(HasSubstr("2 keys of people who were forgotten can be had again"),
                                HasSubstr("stela privacy reapply")));
  ASSERT_EQ(privacy({"reapply", "--yes"}).code, 0);
  EXPECT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "destroyed"), "0");
  EXPECT_THAT(run({"doctor"}, {.environment = environment()}).out,
              Not(HasSubstr("can be had again")));
}

TEST_F(ToolPrivacy, ReadsAKeyStoreWhoseWriterWasKilled) {
  const std::string killed = dir_.file("keys/killed.db");
  {
    // The file in the midst of a commit, and the journal that takes it back.
    RawSqlite writer{keys_};
    writer.run("PRAGMA cache_size = 1");
    writer.run("PRAGMA cache_spill = 1");
    writer.run("BEGIN");
    writer.run("CREATE TABLE filling (bytes BLOB)");
    for (int i = 0; i < 50; ++i) writer.run("INSERT INTO filling VALUES (zeroblob(100000))");
    std::filesystem::copy_file(keys_, killed);
    std::filesystem::copy_file(keys_ + "-journal", killed + "-journal");
    writer.run("ROLLBACK");
  }
  ASSERT_GT(std::filesystem::file_size(killed), std::filesystem::file_size(keys_));
  std::filesystem::copy_file(keys_ + ".master", killed + ".master");
  ::chmod((killed + ".master").c_str(), 0600);
  const Ran ran = run({"privacy", "subjects", "--keys", killed});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("guest-m1"));
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
}  // namespace stela::test::privacy_test

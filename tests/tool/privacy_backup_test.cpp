// stela privacy reapply: backups that bring back what was forgotten.
#include "nats/jetstream.hpp"
#include "nats/wire_client.hpp"
#include "support/nats_server.hpp"
#include "support/raw_sqlite.hpp"
#include "support/silent_server.hpp"
#include "tool/kept_errors.hpp"
#include "tool/privacy.hpp"

#include <stela/nats/inbox.hpp>
#include <stela/projections/projections.hpp>

#include <sys/stat.h>

#include <filesystem>

namespace stela::test::privacy_backup_test {
namespace {

using namespace privacy;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
              AllOf(HasSubstr("2 keys of people who were forgotten can be had again"),
                    HasSubstr("of 2 only an imported event says so, which may be forged")));
  const Ran rotated = privacy({"rotate"});
  EXPECT_EQ(rotated.code, 0) << "a forged event must not stop the timer";
  EXPECT_THAT(rotated.out, HasSubstr(", but what only an imported event forgets lives"));
  EXPECT_EQ(member(privacy({"reapply", "--yes", "--json"}).out, "destroyed"), "2");
  EXPECT_EQ(people(), 1U);
  EXPECT_EQ(member(privacy({"reapply", "--dry-run", "--json"}).out, "fenced"), "0");
}

TEST_F(ToolPrivacyOfABackup, IsNotForgottenByAnEventIfAHoldKeepsIt) {
  ASSERT_EQ(privacy({"hold", "guest-m1", "--purpose", "default", "--reason", "court"}).code, 0);
  run_well({"outbox", "reconcile", "--from-broker", "--yes", "--db", db_, "--nats", nats_.url(),
            "--stream", "SHOP"});
  const std::string plan = privacy({"reapply", "--dry-run"}).out;
  EXPECT_THAT(
      plan, HasSubstr("1 key to destroy by event 5 (imported: 'events show' says of whom), 0 keys"))
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

}  // namespace
}  // namespace stela::test::privacy_backup_test

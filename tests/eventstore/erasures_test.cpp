// What restored, killed and tampered key stores do: destroyed keys stay destroyed, living ones
// live.
#include "support/fault_vfs.hpp"
#include "support/key_place.hpp"
#include "support/process.hpp"
#include "support/recording_sinks.hpp"
#include "support/small_disk.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/keys.hpp>
#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace stela::erasures_test {
namespace {

namespace fs = std::filesystem;
using test::KeyPlace;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Subject margaret{"guest-m1", ""};
const Subject ada{"guest-a1", ""};

void destroy(Keys& keys, const KeyId& id) {
  keys.destroy({&id, 1});
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in{path};
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void write_lines(const std::string& path, const std::vector<std::string>& lines) {
  std::ofstream out{path};
  for (const std::string& line : lines) out << line << '\n';
}

class Erasures : public ::testing::Test {
 protected:
  Keys open(KeyOptions options = {}) {
    options.log = &log;
    options.erasures = erasures;
    return place.open(options);
  }
  void back_up() { place.back_up(); }
  void restore() { place.restore(); }

  const TempDir dir = TempDir::in_memory();
  const std::string path = dir.file("shop.keys.db");
  const std::string erasures = dir.file("erasures");
  const KeyPlace place{path};
  test::RecordingLog log;
};

TEST_F(Erasures, AreAppliedAgainToARestoredKeyStore) {
  KeyId margarets;
  KeyId adas;
  {
    Keys keys = open();
    margarets = keys.key_of(margaret)->id;
    adas = keys.key_of(ada)->id;
    back_up();
    destroy(keys, margarets);
  }
  restore();
  ASSERT_THAT(place.run("SELECT count(*) FROM subject_keys WHERE wrapped IS NULL"),
              ElementsAre("0"));

  Keys keys = open();
  EXPECT_EQ(keys.destroyed_again(), 1U);
  EXPECT_EQ(keys.find(margarets), nullptr);
  EXPECT_NE(keys.find(adas), nullptr);
  EXPECT_THROW(keys.key_of(margaret), SubjectForgotten);
  EXPECT_THAT(place.run("SELECT number FROM subject_keys WHERE wrapped IS NULL"), ElementsAre("1"));
  EXPECT_THAT(keys.erasure_problems(), IsEmpty());
  EXPECT_THAT(log.entries(), ::testing::Contains("warning keys.destroyed_again"));
  EXPECT_EQ(open().destroyed_again(), 0U);
}

TEST_F(Erasures, HoldForThoseWhoOnlyRead) {
  KeyId margarets;
  {
    Keys keys = open();
    margarets = keys.key_of(margaret)->id;
    back_up();
    destroy(keys, margarets);
  }
  restore();
  Keys keys = open({.read_only = true});
  EXPECT_EQ(keys.find(margarets), nullptr);
  EXPECT_THROW(keys.key_of(margaret), SubjectForgotten);
}

TEST_F(Erasures, OfAFormerKeyLeaveTheKeyOfWhoReturned) {
  KeyId second;
  {
    Keys keys = open();
    destroy(keys, keys.key_of(margaret)->id);
    keys.allow_again("guest-m1");
    second = keys.key_of(margaret)->id;
  }
  EXPECT_EQ(open().key_of(margaret)->id, second);
}

TEST_F(Erasures, NameKeysAndNoSubjects) {
  Keys keys = open();
  const KeyId id = keys.key_of(margaret)->id;
  destroy(keys, id);
  destroy(keys, id);
  const auto lines = lines_of(erasures);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("stela-erasure-1 1 " + keys.standing().id.to_string() + " "));
  EXPECT_THAT(lines[0], HasSubstr(" " + id.to_string() + " "));
  EXPECT_THAT(lines[0], ::testing::Not(HasSubstr("guest")));
}

/// What is so of a file alone.
class ErasuresOfAFile : public Erasures {};

/// Five destroyed keys, restored to when they were alive, with the file changed meanwhile.
class ChangedErasures : public Erasures {
 protected:
  void make() {
    Keys keys = open();
    for (int i = 0; i < 5; ++i) {
      ids.push_back(keys.key_of({"guest-" + std::to_string(i), ""})->id);
    }
    back_up();
    for (const KeyId& id : ids) destroy(keys, id);
  }
  /// Which of the keys live, as digits.
  std::string living(Keys& keys) {
    std::string text;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (keys.find(ids[i]) != nullptr) text += std::to_string(i);
    }
    return text;
  }

  std::vector<KeyId> ids;
};

TEST_F(ChangedErasures, AreReportedAndTheRestIsApplied) {
  make();
  KeyId others;
  {
    Keys keys = open();
    others = keys.key_of(ada)->id;
  }
  auto lines = lines_of(erasures);
  ASSERT_THAT(lines, SizeIs(5));
  // A forger who may write to the file, and wants another key to be destroyed.
  const std::size_t at = lines[1].find(ids[1].to_string());
  lines[1].replace(at, 22, others.to_string());
  write_lines(erasures, lines);
  restore();

  Keys keys = open();
  EXPECT_EQ(living(keys), "1");
  ASSERT_FALSE(keys.erasure_problems().empty());
  EXPECT_THAT(keys.erasure_problems()[0], HasSubstr("line 2 was changed"));
  EXPECT_THAT(log.entries(), ::testing::Contains("warning keys.erasures_wrong"));
}

TEST_F(ChangedErasures, AreMissedByTheirNumbers) {
  make();
  auto lines = lines_of(erasures);
  lines.erase(lines.begin() + 1);
  write_lines(erasures, lines);
  restore();
  Keys keys = open();
  EXPECT_EQ(living(keys), "1");
  ASSERT_THAT(keys.erasure_problems(), SizeIs(1));
  EXPECT_THAT(keys.erasure_problems()[0], HasSubstr("before line 2 erasures are missing"));
}

TEST_F(ChangedErasures, AreMissedAtTheEnd) {
  make();
  auto lines = lines_of(erasures);
  lines.resize(3);
  write_lines(erasures, lines);
  Keys keys = open();
  EXPECT_EQ(living(keys), "");
  ASSERT_THAT(keys.erasure_problems(), SizeIs(1));
  EXPECT_THAT(keys.erasure_problems()[0],
              HasSubstr("up to 5 were written to it, and it ends with 3"));
}

TEST_F(ChangedErasures, OfAnotherKeyStoreAreLeftAlone) {
  make();
  restore();
  const KeyPlace elsewhere{dir.file("other")};
  Keys other = elsewhere.open({.erasures = erasures});
  destroy(other, other.key_of(margaret)->id);
  EXPECT_THAT(other.erasure_problems(), IsEmpty());
  EXPECT_THAT(lines_of(erasures), SizeIs(6));
  Keys keys = open();
  EXPECT_THAT(keys.erasure_problems(), IsEmpty());
  EXPECT_EQ(living(keys), "");
}

TEST_F(ChangedErasures, AreMendedWhereALineIsUnfinished) {
  make();
  const auto size = fs::file_size(erasures);
  for (const unsigned cut : {1U, 10U, 60U}) {
    fs::resize_file(erasures, size - cut);
    restore();
    Keys keys = open();
    EXPECT_EQ(living(keys), "4");
    ASSERT_FALSE(keys.erasure_problems().empty());
    EXPECT_THAT(keys.erasure_problems()[0], HasSubstr("last line is unfinished"));

    destroy(keys, ids[4]);
    EXPECT_EQ(living(keys), "");
    EXPECT_THAT(lines_of(erasures), SizeIs(5));
    restore();
    EXPECT_THAT(open().erasure_problems(), IsEmpty());
  }
}

TEST_F(ChangedErasures, MayBeGarbage) {
  make();
  std::ofstream{erasures, std::ios::binary} << std::string(5000, '\0')
                                            << "\n\n \nstela-erasure-1\n";
  Keys keys = open();
  EXPECT_EQ(living(keys), "");
  EXPECT_THAT(keys.erasure_problems(), SizeIs(4));
}

TEST_F(Erasures, AreNotWrittenIntoAnotherFile) {
  test::write_secret(place.path() + ".master",
                     std::string(32, 'm'));  // random bytes may end a line
  Keys keys = place.open({.erasures = place.path() + ".master"});
  const KeyId id = keys.key_of(margaret)->id;
  EXPECT_THAT(keys.erasure_problems(), ElementsAre(HasSubstr("isn't a file of erasures")));
  EXPECT_THAT([&] { destroy(keys, id); },
              ::testing::ThrowsMessage<StoreFailed>(HasSubstr("is left as it is")));
  EXPECT_EQ(fs::file_size(place.path() + ".master"), 32U);
  EXPECT_NE(keys.find(id), nullptr);
}

TEST_F(Erasures, SayWhereTheirFolderIsMissing) {
  Keys keys = place.open({.erasures = dir.file("not/mounted")});
  EXPECT_THAT(keys.erasure_problems(), ElementsAre(HasSubstr("is its disk mounted?")));
}

TEST_F(Erasures, ComeBeforeTheKeysAreDestroyed) {
  EXPECT_THROW(place.open({.erasures = "/dev/null"}), StoreFailed);
  test::SmallDisk disk{1};
  Keys keys = place.open({.erasures = disk.file("erasures")});
  const KeyId id = keys.key_of(margaret)->id;
  disk.fill_up(0);
  EXPECT_THAT([&] { destroy(keys, id); },
              ::testing::ThrowsMessage<StoreFull>(HasSubstr("no key was destroyed")));
  EXPECT_NE(keys.find(id), nullptr);
}

TEST_F(ErasuresOfAFile, StayWhereTheKeyStoresDiskFails) {
  test::FailNth watcher;
  test::FaultVfs vfs{watcher};
  KeyId id;
  {
    Keys keys = open({.vfs = vfs.name()});
    id = keys.key_of(margaret)->id;
    watcher.arm({{test::FileOperation::write}, test::Verdict::disk_full, 1, true});
    EXPECT_THROW(destroy(keys, id), StoreFull);
    // It was to be destroyed, and so it is.
    EXPECT_EQ(keys.find(id), nullptr);
    watcher.disarm();
  }
  EXPECT_EQ(open().destroyed_again(), 1U);
}

TEST_F(ErasuresOfAFile, MakeNoKeyWithoutSpace) {
  test::SmallDisk disk{4};
  Keys keys = open_keys(disk.file("keys"), {.erasures = erasures});
  const KeyId id = keys.key_of(margaret)->id;
  disk.fill_up(0);
  EXPECT_THROW(for (int i = 0; i < 10'000; ++i) keys.key_of({"guest-" + std::to_string(i), ""}),
               StoreFull);
  EXPECT_EQ(keys.find(id)->id, id);
  disk.make_room();
  EXPECT_NO_THROW(keys.key_of(ada));
}

/// On a server the connection's process dies in the place of ours, at the nth statement that
/// changes something, or at its transaction's end.
void die_on_server_at(const KeyPlace& place, int nth) {
  const std::string n = std::to_string(nth);
  std::string sql =
      "CREATE OR REPLACE FUNCTION public.die() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
      "AS "
      "$$ BEGIN IF nextval('public.writes') = " +
      n +
      " THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL; END $$;"
      "DROP SEQUENCE IF EXISTS public.writes; CREATE SEQUENCE public.writes;";
  for (const std::string table : {"key_store", "key_encryption_keys", "subject_keys"}) {
    const std::string changes = table == "subject_keys" ? "INSERT" : "INSERT OR UPDATE OR DELETE";
    sql += "CREATE OR REPLACE TRIGGER die AFTER INSERT OR UPDATE OR DELETE ON " + table +
           " FOR EACH STATEMENT EXECUTE FUNCTION public.die();"
           "DROP TRIGGER IF EXISTS die_at_end ON " +
           table + "; CREATE CONSTRAINT TRIGGER die_at_end AFTER " + changes + " ON " + table +
           " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.die();";
  }
  place.run(sql);
}

/// Runs `work` with a key store in processes that are killed at their first, second … write, until
/// one isn't. How many were killed.
template <class Work, class Check>
int kill_at_each_write(const KeyPlace& place, const std::string& erasures, const Work& work,
                       const Check& check) {
  for (int nth = 1;; ++nth) {
    if (test::is_on_postgres()) die_on_server_at(place, nth);
    test::Process child{[&] {
      test::DieAtNthWrite watcher;
      test::FaultVfs vfs{watcher};
      Keys keys = place.open({.erasures = erasures, .vfs = vfs.name()});
      watcher.arm(nth);
      work(keys, nth);
      watcher.arm(0);
    }};
    const bool was_killed = child.wait() != 0;
    if (test::is_on_postgres()) die_on_server_at(place, 0);
    check(nth);
    if (!was_killed) return nth - 1;
  }
}

TEST_F(Erasures, SurviveAKillAtEachWrite) {
  { Keys keys = open(); }
  const auto name_of = [](int nth) { return "guest-" + std::to_string(nth); };
  const int kills = kill_at_each_write(
      place, erasures,
      [&](Keys& keys, int nth) {
        const KeyId id = keys.key_of({name_of(nth), ""})->id;
        destroy(keys, id);
      },
      [&](int nth) {
        Keys keys = open();
        const bool has_record = lines_of(erasures).size() > keys.destroyed(0, 1000).size();
        EXPECT_FALSE(has_record) << nth;
        EXPECT_THAT(keys.erasure_problems(), IsEmpty());
        for (const KeyInfo& key : keys.living(0, 1000)) {
          EXPECT_EQ(keys.key_of(key.subject)->id, key.id);
        }
      });
  EXPECT_GT(kills, test::is_on_postgres() ? 4 : 5);
}

TEST_F(Erasures, AndKeysSurviveARotationThatIsKilledAtEachWrite) {
  std::vector<KeyId> ids;
  {
    Keys keys = open();
    for (int i = 0; i < 60; ++i) ids.push_back(keys.key_of({"guest-" + std::to_string(i), ""})->id);
    destroy(keys, ids[7]);
  }
  const int kills = kill_at_each_write(
      place, erasures, [&](Keys& keys, int) { keys.rotate(); },
      [&](int nth) {
        Keys keys = open();
        EXPECT_FALSE(keys.standing().is_rotating) << nth;
        EXPECT_THAT(place.run("SELECT count(*) FROM key_encryption_keys"), ElementsAre("1"));
        for (std::size_t i = 0; i < ids.size(); ++i) {
          EXPECT_EQ(keys.find(ids[i]) != nullptr, i != 7) << nth;
        }
      });
  EXPECT_GT(kills, test::is_on_postgres() ? 6 : 10);
}

TEST_F(Erasures, AndKeysSurviveAKillWhileTheKeyStoreIsMade) {
  for (int nth = 1;; ++nth) {
    const KeyPlace made{dir.file("new-" + std::to_string(nth))};
    if (test::is_on_postgres()) {
      test::run_at(made.location(),
                   "CREATE SEQUENCE writes; CREATE FUNCTION die() RETURNS event_trigger LANGUAGE "
                   "plpgsql AS $$ BEGIN IF nextval('public.writes') = " +
                       std::to_string(nth) +
                       " THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; END $$; "
                       "CREATE EVENT TRIGGER die ON ddl_command_end EXECUTE FUNCTION die()");
    }
    test::Process child{[&] {
      test::DieAtNthWrite watcher{nth};
      test::FaultVfs vfs{watcher};
      Keys keys = made.open({.vfs = vfs.name()});
      watcher.arm(0);
    }};
    const bool was_killed = child.wait() != 0;
    if (test::is_on_postgres()) test::run_at(made.location(), "DROP EVENT TRIGGER die");
    Keys keys = made.open();
    EXPECT_NO_THROW(keys.key_of(margaret)) << nth;
    if (!was_killed) break;
  }
}

}  // namespace
}  // namespace stela::erasures_test

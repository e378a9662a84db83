// A key store: whose keys it has, what it makes, destroys and refuses.
#include "support/key_place.hpp"
#include "support/process.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/keys.hpp>
#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/error.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace stela::keys_test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::KeyPlace;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

const Subject margaret{"guest-m1", ""};
const Subject margarets_invoices{"guest-m1", "invoices"};
const Subject ada{"guest-a1", ""};

std::vector<std::uint8_t> bytes_of(const SubjectKey& key) {
  return {key.secret.bytes().begin(), key.secret.bytes().end()};
}

std::string content_of(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

bool contains(const KeyPlace& place, std::span<const std::uint8_t> bytes) {
  return place.has({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// The bytes of a column in hex, of the first row.
std::vector<std::uint8_t> blob(const KeyPlace& place, const std::string& sql) {
  std::vector<std::uint8_t> bytes;
  const std::string hex = place.run(sql).at(0);
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(at, 2), nullptr, 16)));
  }
  return bytes;
}

void destroy(Keys& keys, const KeyId& id) {
  keys.destroy({&id, 1});
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

class KeyStore : public ::testing::Test {
 protected:
  Keys open(KeyOptions options = {}) {
    options.clock = &clock;
    options.log = &log;
    return place.open(options);
  }

  const TempDir dir = TempDir::in_memory();
  const std::string path = dir.file("shop.keys.db");
  const KeyPlace place{path};
  testing::ManualClock clock;
  test::RecordingLog log;
};

/// What is so of a file alone.
class KeyFile : public KeyStore {};

TEST_F(KeyStore, MakesAKeyOnceAndKeepsIt) {
  KeyId id;
  std::vector<std::uint8_t> secret;
  {
    Keys keys = open();
    const auto made = keys.key_of(margaret);
    id = made->id;
    secret = bytes_of(*made);
    EXPECT_EQ(made->subject, margaret);
    EXPECT_EQ(keys.key_of(margaret), made);
    EXPECT_EQ(keys.find(id), made);
  }
  Keys keys = open();
  EXPECT_EQ(bytes_of(*keys.find(id)), secret);
  EXPECT_EQ(keys.key_of(margaret)->id, id);
  EXPECT_EQ(keys.standing().highest, 1);
}

TEST_F(KeyStore, HasAKeyForEachPurpose) {
  Keys keys = open();
  const auto plain = keys.key_of(margaret);
  const auto invoices = keys.key_of(margarets_invoices);
  EXPECT_NE(plain->id, invoices->id);

  const auto all = keys.keys_of("guest-m1");
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].id, plain->id);
  EXPECT_EQ(all[1].subject, margarets_invoices);
  EXPECT_EQ(all[1].number, 2);

  destroy(keys, plain->id);
  EXPECT_THROW(keys.key_of(margaret), SubjectForgotten);
  EXPECT_EQ(keys.key_of(margarets_invoices)->id, invoices->id);
}

/// "number subject purpose" of each.
std::vector<std::string> described(const std::vector<KeyInfo>& keys) {
  std::vector<std::string> all;
  for (const KeyInfo& key : keys) {
    all.push_back(std::to_string(key.number) + ' ' + key.subject.name + ' ' + key.subject.purpose);
  }
  return all;
}

TEST_F(KeyStore, ListsLivingAndDestroyedKeys) {
  Keys keys = open();
  keys.key_of(ada);
  keys.key_of({"guest-b1", ""});
  keys.key_of(margaret);
  keys.key_of(margarets_invoices);
  destroy(keys, keys.key_of({"guest-b1", ""})->id);

  EXPECT_THAT(described(keys.living(0, 10)),
              ElementsAre("1 guest-a1 ", "3 guest-m1 ", "4 guest-m1 invoices"));
  EXPECT_THAT(described(keys.living(0, 1)), ElementsAre("1 guest-a1 "));
  EXPECT_THAT(described(keys.living(3, 10)), ElementsAre("4 guest-m1 invoices"));
  ASSERT_THAT(keys.destroyed(0, 10), SizeIs(1));
  EXPECT_EQ(keys.destroyed(0, 10)[0].number, 2);
  EXPECT_THAT(keys.destroyed(2, 10), IsEmpty());
}

TEST_F(KeyStore, NamesNoSubjectInItsFile) {
  Keys keys = open();
  keys.key_of(margaret);
  EXPECT_FALSE(place.has("guest-m1"));
}

TEST_F(KeyStore, LeavesATombstoneOfADestroyedKey) {
  Keys keys = open();
  const auto made = keys.key_of(margaret);
  EXPECT_EQ(keys.destroy({&made->id, 1}), 1U);
  EXPECT_EQ(keys.destroy({&made->id, 1}), 0U);

  EXPECT_EQ(keys.find(made->id), nullptr);
  EXPECT_THAT([&] { keys.key_of(margaret); },
              ThrowsMessage<SubjectForgotten>(HasSubstr("'guest-m1' was forgotten")));
  EXPECT_EQ(open().find(made->id), nullptr);
  EXPECT_THAT(keys.keys_of("guest-m1"), IsEmpty());
  EXPECT_THAT(place.run("SELECT number FROM subject_keys WHERE subject IS NULL AND kek IS NULL AND "
                        "wrapped IS NULL"),
              ElementsAre("1"));
}

TEST_F(KeyStore, LetsASubjectReturnWithAnotherKey) {
  Keys keys = open();
  const KeyId former = keys.key_of(margaret)->id;
  destroy(keys, former);
  keys.allow_again("guest-m1");

  const auto made = keys.key_of(margaret);
  EXPECT_NE(made->id, former);
  EXPECT_EQ(keys.keys_of("guest-m1")[0].generation, 2);
  EXPECT_EQ(keys.find(former), nullptr);
  // Applied again it destroys the former one only.
  destroy(keys, former);
  EXPECT_EQ(keys.key_of(margaret)->id, made->id);
  destroy(keys, made->id);
  EXPECT_THROW(keys.key_of(margaret), SubjectForgotten);
}

/// "invoices: tax law" of the keys that are held.
std::vector<std::string> held(const std::vector<KeyInfo>& keys) {
  std::vector<std::string> all;
  for (const KeyInfo& key : keys) {
    if (key.hold) all.push_back(key.subject.purpose + ": " + key.hold->reason);
  }
  return all;
}

TEST_F(KeyStore, HoldsAPurposeUntilItIsReleased) {
  Keys keys = open();
  keys.key_of(margaret);
  // Before there is a key.
  keys.hold(margarets_invoices, std::nullopt, "tax law");
  keys.key_of(margarets_invoices);
  keys.key_of({"guest-a1", "invoices"});
  EXPECT_THAT(held(keys.keys_of("guest-m1")), ElementsAre("invoices: tax law"));
  EXPECT_THAT(held(keys.keys_of("guest-a1")), IsEmpty());
  EXPECT_FALSE(keys.keys_of("guest-m1").back().hold->until);
  EXPECT_FALSE(place.has("guest-m1"));

  keys.hold(margarets_invoices, clock.now() + 1h, "a suit");
  EXPECT_THAT(held(open().keys_of("guest-m1")), ElementsAre("invoices: a suit"));
  EXPECT_EQ(keys.keys_of("guest-m1").back().hold->until, clock.now() + 1h);
  keys.release(margarets_invoices);
  EXPECT_THAT(held(keys.keys_of("guest-m1")), IsEmpty());
  Keys reader = open({.read_only = true});
  EXPECT_THROW(reader.hold(margaret, std::nullopt, ""), UsageError);
}

TEST_F(KeyStore, HoldsAPurposeUntilThen) {
  Keys keys = open();
  keys.key_of(margaret);
  keys.hold(margaret, clock.now() + 1h, "a suit");
  clock.advance(59min);
  EXPECT_THAT(held(keys.keys_of("guest-m1")), ElementsAre(": a suit"));
  clock.advance(1min);
  EXPECT_THAT(held(keys.keys_of("guest-m1")), IsEmpty());
}

TEST_F(KeyStore, TellsAMissingKeyFromADestroyedOne) {
  Keys keys = open();
  const KeyId unknown = KeyId::make();
  EXPECT_THAT([&] { keys.find(unknown); },
              ThrowsMessage<KeyMissing>(HasSubstr("restore a newer backup of the key store")));

  // Its row is in a newer key store than this one.
  EXPECT_EQ(keys.destroy({&unknown, 1}), 0U);
  EXPECT_EQ(keys.find(unknown), nullptr);
  EXPECT_EQ(open().find(unknown), nullptr);
}

TEST_F(KeyStore, KnowsThatItIsBehindTheEvents) {
  Keys keys = open();
  keys.key_of(margaret);
  const KeyStanding standing = keys.standing();
  EXPECT_NO_THROW(keys.check_standing(standing.id, 1));
  EXPECT_THAT([&] { keys.check_standing(standing.id, 3); },
              ThrowsMessage<KeysBehind>(HasSubstr("2 are missing")));
  EXPECT_THAT([&] { keys.check_standing(make_uuid(), 0); },
              ThrowsMessage<KeysBehind>(HasSubstr("is the key store " + standing.id.to_string())));
}

TEST_F(KeyFile, IsForThisUserAlone) {
  Keys keys = open();
  keys.key_of(margaret);
  destroy(keys, keys.key_of(ada)->id);
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_EQ(mode_of(path + ".master"), 0600U);
  EXPECT_EQ(mode_of(path + ".erasures"), 0600U);
  EXPECT_EQ(fs::file_size(path + ".master"), 32U);
  ASSERT_THAT(log.entries(), SizeIs(1));
  EXPECT_EQ(log.entries()[0], "warning keys.master_made");
  EXPECT_FALSE(fs::exists(path + "-wal"));
  EXPECT_FALSE(fs::exists(path + "-journal"));
}

TEST_F(KeyFile, LeavesZerosWhereItsJournalWas) {
  Keys keys = open();
  keys.key_of(margaret);
  const KeyId id = keys.key_of(ada)->id;
  std::ifstream journal{path + "-journal", std::ios::binary};
  ASSERT_TRUE(journal.is_open());
  const auto has_more_than_zeros = [&] {
    journal.clear();
    journal.seekg(0);
    const std::string bytes{std::istreambuf_iterator<char>{journal}, {}};
    EXPECT_GT(bytes.size(), 512U);
    return bytes.find_first_not_of('\0') != std::string::npos;
  };
  EXPECT_TRUE(has_more_than_zeros());
  destroy(keys, id);
  EXPECT_FALSE(fs::exists(path + "-journal"));
  EXPECT_FALSE(has_more_than_zeros());
}

TEST_F(KeyFile, MakesNoOtherMasterKeyForItself) {
  open().key_of(margaret);
  fs::remove(path + ".master");
  EXPECT_THAT([&] { open(); },
              ThrowsMessage<StoreFailed>(HasSubstr("shop.keys.db.master' can't be read")));
  EXPECT_FALSE(fs::exists(path + ".master"));
}

TEST_F(KeyStore, RefusesAMasterKeyThatIsntItsOwn) {
  open().key_of(margaret);
  const std::string other = dir.file("other");
  std::ofstream{other} << std::string(32, 'x');
  fs::permissions(other, fs::perms::owner_read);
  EXPECT_THAT([&] { open({.master = key_file(other)}); },
              ThrowsMessage<StoreFailed>(HasSubstr("isn't the one of this key store")));
}

TEST_F(KeyStore, RefusesAMasterKeyThatOthersMayRead) {
  open();
  fs::permissions(path + ".master", fs::perms::group_read, fs::perm_options::add);
  EXPECT_THAT([&] { open(); }, ThrowsMessage<StoreFailed>(HasSubstr("chmod 600")));
}

TEST_F(KeyStore, RefusesAMasterKeyOfAnotherSize) {
  open();
  for (const std::size_t size : {0U, 31U, 33U, 64U}) {
    fs::resize_file(path + ".master", size);
    EXPECT_THAT([&] { open(); }, ThrowsMessage<StoreFailed>(HasSubstr("exactly 32 bytes")));
  }
}

/// A service that counts, and notes the longest text that it was given.
struct KeyService {
  MasterKey master() {
    const auto change = [this](std::span<const std::uint8_t> bytes) {
      ++calls;
      MasterKey::Bytes changed{bytes.begin(), bytes.end()};
      for (std::uint8_t& byte : changed) byte ^= 0x5a;
      return changed;
    };
    return key_callback(change, change);
  }
  int calls = 0;
};

TEST_F(KeyStore, AsksAServiceForTheKeyEncryptionKeyAlone) {
  KeyService service;
  {
    Keys keys = open({.master = service.master()});
    for (int i = 0; i < 50; ++i) keys.key_of({"guest-" + std::to_string(i), ""});
  }
  EXPECT_EQ(service.calls, 3) << "wrapped, tried, and unwrapped";
  Keys keys = open({.master = service.master()});
  EXPECT_THAT(keys.living(0, 100), SizeIs(50));
  keys.key_of({"guest-1", ""});
  EXPECT_EQ(service.calls, 4);
  EXPECT_FALSE(fs::exists(path + ".master"));
}

TEST_F(KeyStore, TakesNothingThatTheMasterKeyDoesNotUnwrap) {
  const auto garbage =
      key_callback([](std::span<const std::uint8_t>) { return MasterKey::Bytes(96, 7); },
                   [](std::span<const std::uint8_t> bytes) {
                     return MasterKey::Bytes{bytes.begin(), bytes.end()};
                   });
  const auto refused = ThrowsMessage<StoreFailed>(HasSubstr("so nothing was changed"));
  EXPECT_THAT([&] { open({.master = garbage}); }, refused);
  Keys keys = open();
  const KeyId id = keys.key_of(margaret)->id;
  EXPECT_THAT([&] { keys.change_master(garbage); }, refused);
  EXPECT_EQ(keys.rotate().rewrapped, 1);
  EXPECT_EQ(open().find(id)->subject, margaret);
}

TEST_F(KeyStore, IsNotRotatedWithAFormerMasterKey) {
  Keys keys = open();
  const KeyId id = keys.key_of(margaret)->id;
  test::write_secret(dir.file("other"), std::string(32, 'o'));
  const MasterKey other = key_file(dir.file("other"));
  open().change_master(other);

  EXPECT_THROW(keys.rotate(), StoreFailed);
  EXPECT_THROW(keys.change_master(key_file(dir.file("other"))), StoreFailed);
  Keys changed = open({.master = other});
  EXPECT_EQ(changed.rotate().rewrapped, 1);
  EXPECT_EQ(changed.find(id)->subject, margaret);
}

TEST_F(KeyStore, StopsWhenAnOlderCopyHasMadeAnotherKeyWithTheSameNumber) {
  Keys keys = open();
  keys.key_of(margaret);
  place.run("UPDATE subject_keys SET id = randomblob(16), binding = randomblob(16)");
  EXPECT_THAT([&] { keys.refresh(); },
              ThrowsMessage<StoreFailed>(HasSubstr("was replaced by an older")));
}

TEST_F(KeyStore, DropsKeysThatNobodyAsksForAnyMore) {
  Keys keys = open();
  const std::weak_ptr<const SubjectKey> key = keys.key_of(margaret);
  EXPECT_FALSE(key.expired());
  clock.advance(1min);
  EXPECT_TRUE(test::eventually([&] { return key.expired(); }));
}

TEST_F(KeyFile, RefusesOtherFiles) {
  const std::string events = dir.file("shop.db");
  sqlite::open(events);
  EXPECT_THAT([&] { open_keys(events); },
              ThrowsMessage<SchemaMismatch>(HasSubstr("isn't a key store")));
  open();
  EXPECT_THROW(sqlite::open(path), SchemaMismatch);

  const std::string text = dir.file("text");
  std::ofstream{text} << std::string(10'000, 'x');
  EXPECT_THROW(open_keys(text), SchemaMismatch);
  EXPECT_EQ(content_of(text), std::string(10'000, 'x'));
  EXPECT_THROW(open_keys(":memory:"), UsageError);
  EXPECT_THROW(open_keys(dir.file("missing"), {.create = false}), StoreFailed);
}

TEST_F(KeyFile, DoesntOpenWhenItIsCutOff) {
  {
    Keys keys = open();
    for (int i = 0; i < 200; ++i) keys.key_of({"guest-" + std::to_string(i), ""});
  }
  const auto size = fs::file_size(path);
  fs::resize_file(path, size / 2);
  EXPECT_THROW(open().keys_of("guest-199"), StoreFailed);
  fs::resize_file(path, 100);
  EXPECT_THROW(open(), Error);
}

TEST_F(KeyStore, OnlyReadsIfItIsOpenedSo) {
  EXPECT_THROW(open({.read_only = true}), StoreFailed);
  EXPECT_FALSE(fs::exists(path));
  KeyId id;
  {
    Keys keys = open();
    id = keys.key_of(margaret)->id;
  }
  Keys keys = open({.read_only = true});
  EXPECT_EQ(keys.key_of(margaret)->id, id);
  EXPECT_THAT([&] { keys.key_of(ada); }, ThrowsMessage<UsageError>(HasSubstr("read-only")));
  EXPECT_THROW(keys.rotate(), UsageError);
  EXPECT_THROW(destroy(keys, id), UsageError);
  EXPECT_NE(keys.find(id), nullptr);
}

TEST_F(KeyStore, NeverStoresAKeyInClear) {
  Keys keys = open();
  const auto made = keys.key_of(margaret);
  EXPECT_FALSE(contains(place, made->secret.bytes()));
  const auto secret = made->secret.bytes();
  EXPECT_EQ(content_of(path + ".master")
                .find({reinterpret_cast<const char*>(secret.data()), secret.size()}),
            std::string::npos);
  keys.rotate();
  EXPECT_FALSE(contains(place, made->secret.bytes()));
}

TEST_F(KeyStore, LeavesNothingOfAFormerKeyEncryptionKey) {
  Keys keys = open();
  keys.key_of(margaret);
  const auto former = blob(place, "SELECT hex(wrapped) FROM key_encryption_keys");
  ASSERT_TRUE(contains(place, former));
  keys.rotate();
  EXPECT_FALSE(contains(place, former));
  EXPECT_THAT(log.entries(), ::testing::Not(::testing::Contains("warning keys.former_left")));
}

TEST_F(KeyFile, LeavesNothingOfADestroyedKeyInItsFile) {
  Keys keys = open();
  std::vector<std::vector<std::uint8_t>> wrapped;
  for (int i = 0; i < 300; ++i) keys.key_of({"guest-" + std::to_string(i), ""});
  wrapped.push_back(blob(place, "SELECT hex(wrapped) FROM subject_keys WHERE number = 150"));
  const auto former_kek = blob(place, "SELECT hex(wrapped) FROM key_encryption_keys");
  ASSERT_TRUE(contains(place, wrapped[0]));
  destroy(keys, keys.key_of({"guest-149", ""})->id);
  EXPECT_FALSE(contains(place, wrapped[0]));

  wrapped.push_back(blob(place, "SELECT hex(wrapped) FROM subject_keys WHERE number = 151"));
  std::int64_t told = 0;
  const auto progress = [&](std::int64_t so_far, std::int64_t most) {
    told = so_far;
    EXPECT_EQ(most, 300);
  };
  EXPECT_EQ(keys.rotate(progress).rewrapped, 299);
  EXPECT_EQ(told, 299);
  EXPECT_FALSE(contains(place, wrapped[0]));
  EXPECT_FALSE(contains(place, wrapped[1]));
  EXPECT_FALSE(contains(place, former_kek));
}

/// Exchanges a column of two keys.
void exchange_columns(const KeyPlace& place, const std::string& columns) {
  std::string sql =
      "CREATE TEMP TABLE t AS SELECT * FROM subject_keys; "
      "UPDATE subject_keys SET number = -number, id = randomblob(16), binding = randomblob(16);";
  for (const std::string column :
       {"id", "binding", "subject", "wrapped", "purpose", "generation"}) {
    const bool is_other = columns.find(column) != std::string::npos;
    sql += "UPDATE subject_keys SET " + column + " = (SELECT " + column +
           " FROM t WHERE t.number = " +
           (is_other ? "3 + subject_keys.number" : "-subject_keys.number") + ");";
  }
  place.run(sql + "UPDATE subject_keys SET number = -number");
}

class ExchangedRows : public KeyStore, public ::testing::WithParamInterface<const char*> {};

TEST_P(ExchangedRows, OpenNoOthersKey) {
  KeyId margarets;
  {
    Keys keys = open();
    margarets = keys.key_of(margaret)->id;
    keys.key_of(ada);
  }
  exchange_columns(place, GetParam());

  Keys keys = open();
  EXPECT_THAT([&] { keys.find(margarets); },
              ThrowsMessage<StoreFailed>(HasSubstr("doesn't open: its row")));
  EXPECT_THROW(keys.key_of(margaret), StoreFailed);
  EXPECT_THROW(keys.keys_of("guest-m1"), StoreFailed);
  if (std::string_view{GetParam()} == "subject") {
    // A rotation wraps keys, and looks at no name: the keys themselves are at their places.
    EXPECT_EQ(keys.rotate().rewrapped, 2);
    EXPECT_THROW(open().find(margarets), StoreFailed);
    return;
  }
  EXPECT_THROW(keys.rotate(), StoreFailed);
  // Of others the keys can be had all the same.
  EXPECT_TRUE(open().standing().is_rotating);
  EXPECT_THAT(log.entries(), ::testing::Contains("warning keys.rotation_unfinished"));
}

INSTANTIATE_TEST_SUITE_P(Columns, ExchangedRows,
                         ::testing::Values("wrapped", "id", "subject", "binding", "binding subject",
                                           "id wrapped"));

TEST_F(KeyStore, RefusesARowOfAnotherPurposeOrGeneration) {
  for (const std::string change : {"purpose = 'x'", "generation = 2"}) {
    const KeyPlace changed{dir.file(change.substr(0, 7))};
    KeyId id;
    {
      Keys keys = changed.open();
      id = keys.key_of(margaret)->id;
    }
    changed.run("UPDATE subject_keys SET " + change);
    EXPECT_THROW(changed.open().find(id), StoreFailed);
  }
}

TEST_F(KeyStore, RotatesWhileKeysStayWhatTheyAre) {
  Keys keys = open();
  Keys other = open();
  const auto made = keys.key_of(margaret);
  const auto secret = bytes_of(*made);
  destroy(keys, keys.key_of(ada)->id);
  clock.advance(1h);

  const KeyRotation rotation = keys.rotate();
  EXPECT_EQ(rotation.number, 2);
  EXPECT_EQ(rotation.rewrapped, 1);
  EXPECT_EQ(rotation.began_at, clock.now());
  EXPECT_EQ(keys.standing().rotation, 2);
  EXPECT_FALSE(keys.standing().is_rotating);
  EXPECT_EQ(bytes_of(*other.key_of(margaret)), secret);
  EXPECT_NO_THROW(other.key_of({"guest-c1", ""}));
  EXPECT_EQ(bytes_of(*open().find(made->id)), secret);
  EXPECT_THROW(open().key_of(ada), SubjectForgotten);
  EXPECT_THAT(place.run("SELECT count(*) FROM key_encryption_keys"), ElementsAre("1"));
}

TEST_F(KeyStore, RotatesBesideThreadsThatMakeAndDestroyKeys) {
  Keys keys = open();
  Keys other = open();
  std::map<int, KeyId> ids;
  {
    std::jthread maker{[&] {
      for (int i = 0; i < 300; ++i) {
        ids[i] = other.key_of({"guest-" + std::to_string(i), ""})->id;
        if (i % 10 == 0) destroy(other, ids[i]);
      }
    }};
    std::jthread rotator{[&] {
      for (int i = 0; i < 10; ++i) keys.rotate();
    }};
    for (int i = 0; i < 10; ++i) keys.rotate();
  }
  EXPECT_FALSE(keys.standing().is_rotating);
  EXPECT_EQ(keys.standing().rotation, 21);
  Keys again = open();
  for (const auto& [i, id] : ids) EXPECT_EQ(again.find(id) != nullptr, i % 10 != 0) << i;
}

TEST_F(KeyStore, TakesAnotherMasterKey) {
  KeyService service;
  Keys keys = open();
  const auto made = keys.key_of(margaret);
  keys.rotate();
  keys.change_master(service.master());
  EXPECT_EQ(bytes_of(*open({.master = service.master()}).find(made->id)), bytes_of(*made));
  EXPECT_THROW(open(), StoreFailed);
  keys.rotate();
  EXPECT_EQ(keys.key_of(margaret)->id, made->id);
}

TEST_F(KeyStore, DropsKeysFromMemoryAfterAMinute) {
  Keys keys = open({.cached_keys = 100});
  const auto first = keys.key_of(margaret);
  clock.advance(29s);
  EXPECT_EQ(keys.key_of(margaret), first);
  clock.advance(31s);
  const auto second = keys.key_of(margaret);
  EXPECT_NE(second, first);
  EXPECT_EQ(second->id, first->id);
  clock.advance(1h);
  EXPECT_NE(keys.key_of(margaret), second);
}

TEST_F(KeyStore, HoldsNoMoreKeysInMemoryThanItMay) {
  Keys keys = open({.cached_keys = 10});
  const std::weak_ptr<const SubjectKey> first = keys.key_of(margaret);
  EXPECT_FALSE(first.expired());
  for (int i = 0; i < 10; ++i) keys.key_of({"guest-" + std::to_string(i), ""});
  EXPECT_TRUE(first.expired());
}

TEST_F(KeyStore, NoticesWhatOthersDestroy) {
  Keys keys = open();
  Keys other = open();
  const KeyId first = keys.key_of(margaret)->id;
  EXPECT_NE(other.find(first), nullptr);
  destroy(keys, first);
  other.refresh();
  EXPECT_EQ(other.find(first), nullptr);
  EXPECT_THROW(other.key_of(margaret), SubjectForgotten);

  const KeyId second = keys.key_of(ada)->id;
  EXPECT_NE(other.find(second), nullptr);
  destroy(keys, second);
  clock.advance(100ms);
  EXPECT_EQ(other.find(second), nullptr);
}

TEST_F(KeyFile, StopsWhenItsFileIsReplaced) {
  Keys keys = open();
  keys.key_of(margaret);
  fs::rename(path, dir.file("moved"));
  EXPECT_THROW(keys.key_of(ada), StoreFailed);
  open();
  EXPECT_THROW(keys.key_of(ada), StoreFailed);
}

TEST_F(KeyStore, StopsWhenAnOlderCopyTakesItsPlace) {
  Keys keys = open();
  keys.key_of(margaret);
  place.back_up();
  const KeyId lost = keys.key_of(ada)->id;
  keys.refresh();
  place.restore();
  EXPECT_THAT([&] { keys.refresh(); },
              ThrowsMessage<StoreFailed>(HasSubstr("was replaced by an older or another one")));
  // Others may have made a key of the same number since.
  open().key_of({"guest-c1", ""});
  clock.advance(1s);
  EXPECT_THROW(keys.find(lost), StoreFailed);
  EXPECT_THROW(open().find(lost), KeyMissing);
}

TEST_F(KeyStore, SharesItsKeysBetweenThreads) {
  Keys keys = open();
  std::vector<std::map<std::string, KeyId>> found(8);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < found.size(); ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          const std::string own = "guest-" + std::to_string(t) + "x" + std::to_string(i);
          const std::string shared = "guest-" + std::to_string(i);
          found[t][own] = keys.key_of({own, ""})->id;
          found[t][shared] = keys.key_of({shared, ""})->id;
        }
      });
    }
  }
  std::map<std::string, std::set<KeyId>> ids;
  for (const auto& each : found) {
    for (const auto& [name, id] : each) ids[name].insert(id);
  }
  EXPECT_THAT(ids, SizeIs(8 * 20 + 20));
  for (const auto& [name, all] : ids) EXPECT_THAT(all, SizeIs(1)) << name;
  EXPECT_EQ(keys.standing().highest, 8 * 20 + 20);
}

TEST_F(KeyStore, SharesItsKeysBetweenProcesses) {
  constexpr int subjects = 50;
  struct Found {
    std::array<std::array<KeyId, subjects>, 2> ids;
  };
  test::Shared<Found> found;
  const auto work = [&](std::size_t process) {
    return [&, process] {
      Keys keys = place.open({.busy_timeout = 20s});
      for (std::size_t i = 0; i < subjects; ++i) {
        found->ids[process][i] = keys.key_of({"guest-" + std::to_string(i), ""})->id;
      }
    };
  };
  test::Process first{work(0)};
  test::Process second{work(1)};
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  EXPECT_EQ(found->ids[0], found->ids[1]);
  EXPECT_EQ(open().standing().highest, subjects);
}

TEST_F(KeyStore, IsNotUsedAfterAFork) {
  Keys keys = open();
  keys.key_of(margaret);
  test::Process child{[&] {
    try {
      keys.key_of(margaret);
    } catch (const UsageError&) {
      return;
    }
    throw std::runtime_error{"it was used"};
  }};
  EXPECT_EQ(child.wait(), 0);
  EXPECT_NO_THROW(keys.key_of(ada));
}

TEST_F(KeyStore, SaysNothingOfSubjectsAndKeysWhereItFails) {
  KeyId id;
  {
    Keys keys = open();
    id = keys.key_of(margaret)->id;
  }
  place.run("UPDATE subject_keys SET wrapped = randomblob(72)");
  Keys keys = open();
  try {
    keys.find(id);
    ADD_FAILURE() << "it opened";
  } catch (const StoreFailed& e) {
    EXPECT_THAT(e.what(), Not(HasSubstr("guest-m1")));
  }
}

}  // namespace
}  // namespace stela::keys_test

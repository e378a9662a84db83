// A tenant is erased whole, and nothing else is: what can't be shown to be its own stays.
#include "support/orders.hpp"
#include "tenants/tenant_place.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace stela::tenants_test {
namespace {

using test::Order;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

namespace fs = std::filesystem;
using namespace std::chrono_literals;

void place_order(Store& store, const char* id) {
  Order order = Order::place(Id<Order>::from(id), "jane", 100);
  Repository<Order>{store}.save(order);
}

TEST(Erasure, ComesAfterAGrace) {
  const test::TenantPlace place;
  Tenants tenants = place.open();
  tenants.create("acme");
  place_order(*tenants.use("acme"), "1");
  EXPECT_THAT([&] { tenants.erase("acme"); },
              ThrowsMessage<UsageError>(HasSubstr("drop it first")));
  EXPECT_THROW(tenants.drop("acme", "left", std::chrono::seconds::max()), UsageError);
  tenants.drop("acme", "left", 1h);
  EXPECT_THROW(place_order(*tenants.use("acme"), "2"), StoreSuspended);
  EXPECT_THAT([&] { tenants.erase("acme"); },
              ThrowsMessage<UsageError>(HasSubstr("isn't erased before 20")));
  tenants.resume("acme");
  place_order(*tenants.use("acme"), "2");

  tenants.drop("acme", "left", 0s);
  const TenantStore held = tenants.use("acme");
  EXPECT_EQ(tenants.erase("acme").state, TenantState::erased);
  EXPECT_THROW(place_order(*held, "3"), Error);
  EXPECT_THAT([&] { tenants.use("acme"); },
              ThrowsMessage<NotFound>(HasSubstr("is no longer there (erased since 20")));
  EXPECT_THROW(tenants.create("acme"), UsageError) << "its name is never used again";
  EXPECT_EQ(tenants.erase("acme").state, TenantState::erased);
}

/// Two tenants with key stores, of which acme is dropped. Nobody has them open.
class ErasureOfAFile : public ::testing::Test {
 protected:
  ErasureOfAFile() {
    Tenants tenants = open();
    for (const char* const name : {"acme", "globex"}) {
      tenants.create(name);
      place_order(*tenants.use(name), "1");
    }
    tenants.drop("acme", "left", 0s);
  }
  Tenants open() const { return place.open(options); }
  std::string store(const std::string& name) const {
    return place.dir.file("data/" + name + ".db");
  }
  std::string keys(const std::string& name) const {
    return place.dir.file("keys/" + name + "/keys");
  }
  /// It refuses to erase acme, and says this; all files stay.
  template <class E>
  void refuses(const std::string& why) {
    const std::size_t before = files();
    Tenants tenants = open();
    EXPECT_THAT([&] { tenants.erase("acme"); }, ThrowsMessage<E>(HasSubstr(why)));
    EXPECT_EQ(tenants.find("acme")->state, TenantState::dropped);
    EXPECT_EQ(files(), before);
  }
  std::size_t files() const {
    const fs::recursive_directory_iterator all{place.dir.path()};
    return static_cast<std::size_t>(std::count_if(begin(all), end(all), [](const auto& entry) {
      return entry.is_regular_file() && !entry.path().filename().string().starts_with("tenants.db");
    }));
  }
  bool is_erased() {
    Tenants tenants = open();
    return tenants.erase("acme").state == TenantState::erased && !fs::exists(store("acme")) &&
           !fs::exists(keys("acme"));
  }
  void globex_works() { place_order(*open().use("globex"), "2"); }

  test::TenantPlace place;
  TenantsOptions options{.keys = "keys/{tenant}/keys"};
};

TEST_F(ErasureOfAFile, TakesTheKeysAndTheirFolder) {
  EXPECT_TRUE(is_erased());
  EXPECT_FALSE(fs::exists(place.dir.file("keys/acme")));
  globex_works();
}

TEST_F(ErasureOfAFile, IsRefusedIfItWasResumedSinceTheRegistrysBackup) {
  const std::string registry = place.dir.file("tenants.db");
  const std::string backup = place.dir.file("backup");
  {
    Store store = sqlite::open(registry, {.read_only = true});
    sqlite::backup(store, backup);
  }
  open().resume("acme");
  for (const char* const ending : {"", "-wal", "-shm"}) fs::remove(registry + ending);
  fs::copy_file(backup, registry);
  fs::remove(backup);
  refuses<UsageError>(
      "or it was resumed since and the registry is from an older backup; drop it again");
  place_order(*open().use("acme"), "2");
  refuses<UsageError>("drop it again");
  open().drop("acme", "left indeed", 0s);
  EXPECT_TRUE(is_erased());
}

TEST_F(ErasureOfAFile, FollowsALinkToItsStore) {
  const std::string real = place.dir.file("real.db");
  fs::rename(store("acme"), real);
  fs::create_symlink(real, store("acme"));
  EXPECT_TRUE(is_erased());
  EXPECT_FALSE(fs::exists(real));
  EXPECT_FALSE(fs::is_symlink(store("acme")));
}

TEST_F(ErasureOfAFile, FollowsALinkAlsoWhenItIsRepeated) {
  const std::string real = place.dir.file("real.db");
  fs::rename(store("acme"), real);
  fs::create_symlink("../real.db", store("acme"));
  fs::remove(real + "-lock");
  fs::create_directories(real + "-lock/full");
  EXPECT_THROW(open().erase("acme"), StoreFailed);
  EXPECT_FALSE(fs::exists(real));
  std::ofstream{real + "-wal"} << "what a reader kept";
  fs::remove_all(real + "-lock");
  EXPECT_TRUE(is_erased());
  EXPECT_FALSE(fs::exists(real + "-wal"));
}

TEST_F(ErasureOfAFile, LeavesALinkToTheFolderOfStores) {
  const std::string elsewhere = place.dir.file("disk");
  fs::rename(place.dir.file("data"), elsewhere);
  fs::create_directory_symlink(elsewhere, place.dir.file("data"));
  EXPECT_TRUE(is_erased());
  globex_works();
}

TEST_F(ErasureOfAFile, LeavesAnothersStore) {
  fs::rename(store("acme"), place.dir.file("away"));
  fs::copy_file(store("globex"), store("acme"));
  refuses<SchemaMismatch>("is another store");
  EXPECT_THROW(open().resume("acme"), Error);
  std::ofstream{store("acme")} << "precious";
  refuses<Error>("move it away and say that it is lost");
  fs::remove(store("acme"));
  fs::create_directory(store("acme"));
  refuses<StoreFailed>("isn't a file");
  fs::remove(store("acme"));
  fs::rename(place.dir.file("away"), store("acme"));
  EXPECT_TRUE(is_erased());
}

TEST_F(ErasureOfAFile, LeavesAnothersKeys) {
  fs::rename(keys("acme"), place.dir.file("away"));
  fs::rename(keys("globex"), keys("acme"));
  refuses<SchemaMismatch>("is another key store");
  fs::rename(keys("acme"), keys("globex"));
  fs::create_symlink(keys("globex"), keys("acme"));
  refuses<SchemaMismatch>("is another key store");
  fs::remove(keys("acme"));
  std::ofstream{keys("acme")} << "precious";
  refuses<Error>("");
  fs::rename(place.dir.file("away"), keys("acme"));
  EXPECT_TRUE(is_erased());
  globex_works();
}

TEST_F(ErasureOfAFile, LeavesKeysThatHaveMovedToAnotherRegistry) {
  test::TenantPlace second;
  fs::create_directory(second.dir.file("data"));
  fs::copy_file(store("acme"), second.dir.file("data/acme.db"));
  Tenants others = second.open({.keys = place.dir.file("keys/{tenant}/keys")});
  others.adopt("acme", true);
  EXPECT_EQ(open().erase("acme").state, TenantState::erased);
  EXPECT_FALSE(fs::exists(store("acme")));
  others.resume("acme");
  place_order(*others.use("acme"), "2");
}

TEST_F(ErasureOfAFile, OfACopyLeavesTheOriginalsKeys) {
  test::TenantPlace original;
  const TenantsOptions absolute{.keys = original.dir.file("keys/{tenant}/keys")};
  {
    Tenants tenants = original.open(absolute);
    tenants.create("acme");
    tenants.drop("acme", "left", 0s);
  }
  test::TenantPlace copy;
  fs::copy(original.dir.path(), copy.dir.path(), fs::copy_options::recursive);
  EXPECT_THAT([&] { copy.open().erase("acme"); },
              ThrowsMessage<UsageError>(HasSubstr("doesn't destroy the original's keys")));
  // A moved registry uses its keys, and erases them once it says so.
  copy.open().use("acme");
  copy.open().adopt("acme", true);
  EXPECT_THROW(original.open().erase("acme"), UsageError);
  EXPECT_EQ(copy.open().erase("acme").state, TenantState::erased);
}

TEST_F(ErasureOfAFile, LeavesAMasterKeyThatAllShare) {
  test::TenantPlace second;
  fs::create_directories(second.dir.file("keys/acme"));
  const std::string master = second.dir.file("keys/acme/keys.master");
  test::write_secret(master, std::string(32, 'm'));
  options.master = key_file(master);
  Tenants tenants = second.open(options);
  for (const char* const name : {"acme", "globex"}) tenants.create(name);
  tenants.drop("acme", "left", 0s);
  { const Tenants closed = std::move(tenants); }
  // Whoever erases it may leave the option out.
  second.open().erase("acme");
  EXPECT_FALSE(fs::exists(second.dir.file("keys/acme/keys")));
  EXPECT_TRUE(fs::exists(master));
  second.open(options).use("globex");
}

TEST_F(ErasureOfAFile, TakesItsMasterKeyAlsoWhenAllShareAnotherSince) {
  test::write_secret(place.dir.file("shared"), std::string(32, 'm'));
  options.master = key_file(place.dir.file("shared"));
  EXPECT_TRUE(is_erased());
  EXPECT_FALSE(fs::exists(keys("acme") + ".master"));
}

TEST_F(ErasureOfAFile, LeavesAMasterKeyThatAllShareSince) {
  options.master = key_file(keys("acme") + ".master");
  EXPECT_TRUE(is_erased());
  EXPECT_TRUE(fs::exists(keys("acme") + ".master"));
}

TEST_F(ErasureOfAFile, IsRefusedWhileItsMasterKeyIsALink) {
  const std::string shared = place.dir.file("shared");
  fs::rename(keys("acme") + ".master", shared);
  fs::create_symlink(shared, keys("acme") + ".master");
  refuses<StoreFailed>("is a link, and others may use what it leads to");
  fs::remove(keys("acme") + ".master");
  EXPECT_TRUE(is_erased());
  EXPECT_TRUE(fs::exists(shared));
}

TEST_F(ErasureOfAFile, TakesOnlyErasuresOfItsOwn) {
  const std::string file = keys("acme") + ".erasures";
  const auto record_of = [&](const std::string& name) {
    return "stela-erasure-1 1 " + open().use(name).keys()->standing().id.to_string() +
           " 2026-01-01T00:00:00Z " + KeyId{}.to_string() + ' ' + KeyId{}.to_string() + ' ' +
           KeyId{}.to_string() + '\n';
  };
  const std::string own = record_of("acme");
  const std::string others = record_of("globex");
  std::ofstream{file} << own << others;
  EXPECT_TRUE(is_erased());
  EXPECT_TRUE(fs::exists(file));
  std::ofstream{file} << own;
  EXPECT_TRUE(is_erased());
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(ErasureOfAFile, IsRefusedWhileAFileIsMissing) {
  fs::rename(keys("acme"), place.dir.file("away"));
  refuses<StoreFailed>("mount its disk");
  fs::rename(place.dir.file("away"), keys("acme"));
  fs::rename(place.dir.file("data"), place.dir.file("unmounted"));
  refuses<StoreFailed>("the store, '" + store("acme") + "', of tenant 'acme' is missing");
  fs::create_directory(place.dir.file("data"));
  EXPECT_EQ(open().erase("acme", true).state, TenantState::erased);
  EXPECT_FALSE(fs::exists(keys("acme")));
}

TEST_F(ErasureOfAFile, IsRefusedWhileAFileHasAnotherName) {
  for (const std::string& file : {store("acme"), keys("acme"), keys("acme") + ".master"}) {
    fs::create_hard_link(file, place.dir.file("other"));
    refuses<StoreFailed>("hard links");
    fs::remove(place.dir.file("other"));
  }
  EXPECT_TRUE(is_erased());
}

TEST_F(ErasureOfAFile, IsRepeatedIfItWasInterrupted) {
  // Something that can't be removed: not even root removes a folder that isn't empty.
  fs::remove(store("acme") + "-lock");
  fs::create_directories(store("acme") + "-lock/full");
  Tenants tenants = open();
  EXPECT_THROW(tenants.erase("acme"), StoreFailed);
  EXPECT_FALSE(fs::exists(keys("acme")));
  EXPECT_EQ(open().find("acme")->state, TenantState::erasing);
  EXPECT_THAT([&] { tenants.use("acme"); },
              ThrowsMessage<NotFound>(HasSubstr("is no longer there (erasing since 20")));
  EXPECT_THROW(tenants.resume("acme"), UsageError);
  fs::remove_all(store("acme") + "-lock");
  EXPECT_TRUE(is_erased());
}

}  // namespace
}  // namespace stela::tenants_test

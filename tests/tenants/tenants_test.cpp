// Tenants have stores of their own: what one does never reaches another, and the registry's word
// counts in every process.
#include "support/moved.hpp"
#include "support/orders.hpp"
#include "support/process.hpp"
#include "tenants/tenant_place.hpp"

#include <stela/outbox.hpp>
#include <stela/privacy.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace stela::tenants_test {
namespace {

using test::Moved;
using test::Order;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class TenantsTest : public ::testing::Test {
 protected:
  static void place_order(Store& store, const char* id) {
    Order order = Order::place(Id<Order>::from(id), "jane", 100);
    Repository<Order>{store}.save(order);
  }
  static std::vector<std::string> names(Tenants& tenants) {
    std::vector<std::string> all;
    for (const Tenant& one : tenants.list()) all.push_back(one.name);
    return all;
  }

  test::TenantPlace place;
};

TEST_F(TenantsTest, HaveAStoreEach) {
  Tenants tenants = place.open();
  const Tenant acme = tenants.create("acme");
  const Tenant globex = tenants.create("globex-2");
  EXPECT_NE(acme.store, globex.store);
  EXPECT_EQ(acme.state, TenantState::active);
  place_order(*tenants.use("acme"), "1");

  EXPECT_EQ(tenants.use("acme")->last_sequence(), GlobalSequence{1});
  EXPECT_EQ(tenants.use("globex-2")->last_sequence(), GlobalSequence{0});
  Tenants others = place.open();
  EXPECT_THAT(names(others), ElementsAre("acme", "globex-2"));
  EXPECT_EQ(others.use("acme")->last_sequence(), GlobalSequence{1});
}

TEST_F(TenantsTest, AreUsedOnlyIfTheyAreRegistered) {
  Tenants tenants = place.open();
  EXPECT_THAT([&] { tenants.use("acme"); },
              ThrowsMessage<NotFound>(HasSubstr("there is no tenant 'acme'")));
  EXPECT_THROW(tenants.suspend("acme", "unpaid"), NotFound);
  tenants.create("acme");
  EXPECT_THAT([&] { tenants.create("acme"); },
              ThrowsMessage<UsageError>(HasSubstr("a name is never used twice")));
}

TEST_F(TenantsTest, AreSeenAtOnceByOtherProcesses) {
  Tenants one = place.open();
  Tenants two = place.open();
  one.create("acme");
  place_order(*two.use("acme"), "1");
}

TEST_F(TenantsTest, HaveNamesThatFitEverywhere) {
  Tenants tenants = place.open();
  for (const char* const name :
       {"", "Acme", "a.b", "../up", "-a", "_a", "all", "other", "con", "p00", "acme_p07",
        "acme_app", "a b", "a%", "caf\xc3\xa9", "0123456789012345678901234567890123456789"}) {
    EXPECT_THAT([&] { tenants.create(name); },
                ThrowsMessage<UsageError>(HasSubstr("can't be a tenant's name")))
        << name;
  }
  for (const char* const name : {"a", "9", "a-b_c", "p0", "xp00", "allx"}) tenants.create(name);
  EXPECT_THAT(names(tenants), ElementsAre("9", "a", "a-b_c", "allx", "p0", "xp00"));
}

TEST_F(TenantsTest, TakeNoAggregateOfAnother) {
  Tenants tenants = place.open();
  tenants.create("acme");
  tenants.create("globex");
  const TenantStore acme = tenants.use("acme");
  const TenantStore globex = tenants.use("globex");
  place_order(*acme, "1");
  Order order = Repository<Order>{*acme}.load(Id<Order>::from("1"));
  order.note("for the other");
  EXPECT_THROW(Repository<Order>{*globex}.save(order), UsageError);
  EXPECT_EQ(globex->last_sequence(), GlobalSequence{0});
}

TEST_F(TenantsTest, RefuseAppendsWhileSuspended) {
  Tenants tenants = place.open();
  Tenants elsewhere = place.open();
  tenants.create("acme");
  const TenantStore held = elsewhere.use("acme");
  place_order(*held, "1");

  EXPECT_EQ(tenants.suspend("acme", "unpaid").state, TenantState::suspended);
  EXPECT_THAT([&] { place_order(*held, "2"); },
              ThrowsMessage<StoreSuspended>(
                  AllOf(HasSubstr("tenant 'acme' is suspended since 20"), HasSubstr("unpaid"))));
  EXPECT_THROW(place_order(*tenants.use("acme"), "2"), StoreSuspended);
  EXPECT_EQ(held->last_sequence(), GlobalSequence{1}) << "reads work";

  tenants.resume("acme");
  place_order(*held, "2");
  EXPECT_EQ(elsewhere.find("acme")->reason, "");
}

TEST_F(TenantsTest, SayTheirNewestReason) {
  Tenants tenants = place.open();
  tenants.create("acme");
  const TenantStore held = tenants.use("acme");
  tenants.suspend("acme", "unpaid");
  tenants.drop("acme", "left", 1h);
  EXPECT_THAT([&] { place_order(*held, "1"); },
              ThrowsMessage<StoreSuspended>(
                  AllOf(HasSubstr("tenant 'acme' is dropped since 20"), HasSubstr("left"))));
  const Timestamp first = tenants.find("acme")->erase_from;
  EXPECT_GT(tenants.drop("acme", "asked to wait", 48h).erase_from, first);
  EXPECT_THAT([&] { place_order(*held, "1"); },
              ThrowsMessage<StoreSuspended>(HasSubstr("asked to wait")));
}

TEST_F(TenantsTest, AreAdoptedByANewRegistry) {
  test::TenantPlace second;
  second.at = test::is_on_postgres() ? place.at : place.dir.file("data/{tenant}.db");
  {
    Tenants tenants = place.open();
    tenants.create("acme");
    tenants.create("globex");
    place_order(*tenants.use("acme"), "1");
  }
  Tenants again = second.open();
  EXPECT_THAT(again.adopt_all(), IsEmpty()) << "the first registry may be alive";
  EXPECT_THAT(
      [&] { again.adopt("acme"); },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("of the registry "), HasSubstr("--take-over"))));
  EXPECT_THAT(again.adopt_all(true), ElementsAre("acme", "globex"));
  EXPECT_THAT(again.adopt_all(true), IsEmpty());
  EXPECT_EQ(again.use("acme")->last_sequence(), GlobalSequence{1});
}

TEST_F(TenantsTest, KeepAFewStoresOpen) {
  Tenants tenants = place.open({.most_open = 2, .files = {.busy_timeout = 100ms}});
  for (const char* const name : {"a", "b", "c"}) tenants.create(name);
  for (const char* const name : {"a", "b", "c"}) place_order(*tenants.use(name), name);
  const TenantStore a = tenants.use("a");
  const TenantStore again = tenants.use("a");
  EXPECT_EQ(&a.store(), &again.store());
  auto b = std::make_unique<TenantStore>(tenants.use("b"));
  EXPECT_THAT([&] { tenants.use("c"); }, ThrowsMessage<StoreBusy>(HasSubstr("raise most_open")));
  std::jthread ends{[&] {
    test::is_stopped_within(20ms, {});
    b.reset();
  }};
  EXPECT_EQ(tenants.use("c")->last_sequence(), GlobalSequence{1});
}

TEST_F(TenantsTest, ShareWhatLivesWithAStore) {
  Tenants tenants = place.open();
  int furnished = 0;
  tenants.furnish([&](TenantStore& store) {
    ++furnished;
    store.keep<Outbox>();
  });
  tenants.create("acme");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { place_order(*tenants.use("acme"), std::to_string(i).c_str()); });
  }
  threads.clear();
  EXPECT_EQ(furnished, 1);
  TenantStore acme = tenants.use("acme");
  EXPECT_EQ(&acme.keep<Outbox>().store(), &acme.store().anchor());
}

TEST_F(TenantsTest, KeepTheFactsOfTheRegistry) {
  { place.open(); }
  const test::TenantPlace second;
  EXPECT_THAT([&] { place.open({.at = "elsewhere/{tenant}.db"}); },
              ThrowsMessage<UsageError>(HasSubstr("leave it out")));
  EXPECT_THAT([&] { second.open({.keys = "postgresql://keys@127.0.0.1/keys"}); },
              ThrowsMessage<UsageError>(HasSubstr("key stores are files")));
  EXPECT_THAT([&] { place.open({.keys = "keys/{tenant}.keys"}); },
              ThrowsMessage<UsageError>(HasSubstr("key stores are at ''")));
}

class TenantsOfAFile : public TenantsTest {};

TEST_F(TenantsOfAFile, AreThoseOfARegistryThatWasRestored) {
  Tenants tenants = place.open();
  tenants.create("acme");
  tenants.create("globex");
  ASSERT_THAT(names(tenants), ElementsAre("acme", "globex"));
  test::RawSqlite raw{place.registry};
  raw.drop_triggers();
  raw.run("DELETE FROM events WHERE sequence = (SELECT max(sequence) FROM events)");
  EXPECT_THAT(names(tenants), ElementsAre("acme"));
}

TEST_F(TenantsOfAFile, NeedAPlaceWithTheirName) {
  EXPECT_THAT([&] { open_tenants(place.registry); },
              ThrowsMessage<UsageError>(HasSubstr("must be told where their stores are")));
  for (const char* const at :
       {"data", "data/{tenant}/{tenant}.db", "data/{tenant}/", "data/{tenant}"}) {
    EXPECT_THROW(open_tenants(place.registry, {.at = at}), UsageError) << at;
  }
}

TEST_F(TenantsOfAFile, AreRefusedUnderAnothersName) {
  {
    Tenants tenants = place.open();
    tenants.create("acme");
    tenants.create("globex");
  }
  Tenants fresh = place.open();
  const std::string data = place.dir.file("data/");
  fs::rename(data + "acme.db", data + "x");
  fs::rename(data + "globex.db", data + "acme.db");
  EXPECT_THAT([&] { fresh.use("acme"); },
              ThrowsMessage<SchemaMismatch>(HasSubstr("another store stands in its place")));
}

TEST_F(TenantsOfAFile, TakeNoAppendsOfOtherPrograms) {
  Tenants tenants = place.open();
  tenants.create("acme");
  Store bare = sqlite::open(tenants.place_of("acme"));
  EXPECT_THAT([&] { place_order(bare, "1"); },
              ThrowsMessage<ParticipantMissing>(HasSubstr("'tenant' (acme, of the registry ")));
}

TEST_F(TenantsOfAFile, HaveKeysOfTheirOwn) {
  const TenantsOptions options{.keys = "keys/{tenant}/keys"};
  {
    Tenants tenants = place.open(options);
    for (const char* const name : {"acme", "globex"}) tenants.create(name);
    EXPECT_TRUE(fs::exists(place.dir.file("keys/acme/keys.master")));
    EXPECT_NE(tenants.use("acme")->conventions().keys, nullptr);
  }
  fs::remove_all(place.dir.file("keys/acme"));
  fs::copy(place.dir.file("keys/globex"), place.dir.file("keys/acme"));
  Tenants tenants = place.open(options);
  EXPECT_THAT([&] { tenants.use("acme"); },
              ThrowsMessage<SchemaMismatch>(HasSubstr("the key store at the place of tenant")));
  fs::create_directory_symlink("globex", place.dir.file("keys/initech"));
  EXPECT_THROW(tenants.create("initech"), UsageError) << "erasing one would erase both";
  EXPECT_FALSE(tenants.find("initech"));
}

TEST_F(TenantsTest, StayRefusedIfTheRegistryForgetsIt) {
  {
    Tenants tenants = place.open();
    tenants.create("acme");
    tenants.suspend("acme", "unpaid");
  }
  test::TenantPlace second;
  second.at = test::is_on_postgres() ? place.at : place.dir.file("data/{tenant}.db");
  Tenants again = second.open();
  EXPECT_THAT(again.adopt_all(true), ElementsAre("acme"));
  EXPECT_EQ(again.find("acme")->state, TenantState::suspended);
  EXPECT_THROW(place_order(*again.use("acme"), "1"), StoreSuspended);
  again.resume("acme");
  place_order(*again.use("acme"), "1");
  // It belongs to the second registry now, until the first one takes it back.
  Tenants first = place.open();
  EXPECT_THAT([&] { first.use("acme"); }, ThrowsMessage<UsageError>(HasSubstr("--take-over")));
  EXPECT_THROW(first.adopt("acme"), UsageError);
  EXPECT_EQ(first.adopt("acme", true).state, TenantState::suspended);
  EXPECT_THROW(place_order(*first.use("acme"), "2"), StoreSuspended);
  first.resume("acme");
  place_order(*first.use("acme"), "2");
}

TEST_F(TenantsTest, AreFurnishedBeforeTheirFirstUse) {
  Tenants tenants = place.open();
  tenants.create("acme");
  tenants.furnish([](TenantStore& store) { store.keep<Outbox>(); });
  const TenantStore acme = tenants.use("acme");
  place_order(*acme, "1");
  EXPECT_THAT([&] { tenants.furnish([](TenantStore&) {}); },
              ThrowsMessage<UsageError>(HasSubstr("before the first use")));
}

TEST_F(TenantsOfAFile, KeepOthersOutOfTheRegistry) {
  Tenants tenants = place.open();
  tenants.create("acme");
  Store bare = sqlite::open(place.registry);
  EXPECT_THROW(place_order(bare, "1"), ParticipantMissing);
  EXPECT_THAT([&] { open_tenants(place.dir.file("shops/all.db"), {.at = "{tenant}.db"}); },
              ThrowsMessage<Error>(HasSubstr("no folder")));
  EXPECT_THAT([&] { open_tenants(place.dir.file("all.db"), {.at = "{tenant}.db"}); },
              ThrowsMessage<UsageError>(HasSubstr("would be a tenant's store itself")));
}

TEST_F(TenantsOfAFile, AreNotMadeTwice) {
  { place.open().create("acme"); }
  fs::remove(place.registry);
  Tenants tenants = place.open();
  EXPECT_THROW(tenants.create("acme"), UsageError) << "it is another registry's";
  EXPECT_THAT(tenants.adopt_all(true), ElementsAre("acme"));
  place_order(*tenants.use("acme"), "1");
}

TEST_F(TenantsOfAFile, LeaveAnothersStoreAsItIs) {
  const std::string file = place.dir.file("data/acme.db");
  fs::create_directory(place.dir.file("data"));
  place_order(*std::make_unique<Store>(sqlite::open(file)), "1");
  Tenants tenants = place.open();
  EXPECT_THAT([&] { tenants.create("acme"); },
              ThrowsMessage<UsageError>(HasSubstr("already; register it by 'adopt'")));
  place_order(*std::make_unique<Store>(sqlite::open(file)), "2");
  { sqlite::open(place.dir.file("data/empty.db")); }
  EXPECT_THROW(tenants.create("empty"), UsageError) << "it may have tables of its own";
  open_tenants(place.dir.file("data/globex.db"), {.at = "elsewhere/{tenant}/all.db"}).create("x");
  EXPECT_THROW(tenants.create("globex"), UsageError);
  EXPECT_THAT([&] { tenants.adopt("globex", true); },
              ThrowsMessage<UsageError>(HasSubstr("is a registry of tenants")));
  tenants.adopt("acme");
  fs::copy_file(file, place.dir.file("data/initech.db"));
  EXPECT_THAT([&] { tenants.adopt("initech"); },
              ThrowsMessage<UsageError>(HasSubstr("is that of tenant 'acme'")));
}

TEST_F(TenantsOfAFile, TakeNoKeysOfOthers) {
  const TenantsOptions options{.keys = place.dir.file("keys/{tenant}/keys")};
  place.open(options).create("acme");
  test::TenantPlace second;
  Tenants others = second.open(options);
  const auto foreign = ThrowsMessage<UsageError>(
      AllOf(HasSubstr("is that of acme, of the registry"), HasSubstr("a place of their own")));
  EXPECT_THAT([&] { others.create("acme"); }, foreign) << "nobody has a key there yet";
  EXPECT_FALSE(fs::exists(second.dir.file("data/acme.db")));
  fs::create_directory(second.dir.file("data"));
  EXPECT_THAT([&] { others.adopt("acme"); }, ThrowsMessage<NotFound>(HasSubstr("no store at")));
  place_order(*std::make_unique<Store>(sqlite::open(second.dir.file("data/acme.db"))), "1");
  EXPECT_THAT([&] { others.adopt("acme"); }, foreign);
  EXPECT_THAT([&] { others.adopt("acme", true); }, foreign);
  place.open().use("acme");
}

TEST_F(TenantsOfAFile, AreAdoptedWithTheirKeys) {
  const TenantsOptions options{.keys = "keys/{tenant}/keys"};
  place.open(options).create("acme");
  test::TenantPlace second;
  fs::copy(place.dir.file("data"), second.dir.file("data"));
  fs::copy(place.dir.file("data"), second.dir.file("keyless"));
  Tenants keyless = open_tenants(second.dir.file("keyless.all"), {.at = "keyless/{tenant}.db"});
  EXPECT_THAT([&] { keyless.adopt("acme", true); },
              ThrowsMessage<UsageError>(HasSubstr("make it with one (--keys-at)")))
      << "its keys would outlive it";
  Tenants moved = second.open(options);
  EXPECT_THAT([&] { moved.adopt("acme", true); },
              ThrowsMessage<UsageError>(HasSubstr(second.dir.file("keys/acme/keys"))));
  EXPECT_FALSE(fs::exists(second.dir.file("keys")));
  fs::copy(place.dir.file("keys"), second.dir.file("keys"), fs::copy_options::recursive);
  moved.adopt("acme", true);
  place_order(*moved.use("acme"), "1");
}

TEST_F(TenantsOfAFile, AreAdoptedAfterAnImportWithTheirKeysAlone) {
  const TenantsOptions options{.keys = "keys/{tenant}/keys"};
  const auto move_in = [](Tenants& tenants, const char* guest) {
    TenantStore acme = tenants.use("acme");
    UnitOfWork unit{*acme};
    unit.append(StreamId::of("guest", guest), ExpectedVersion::none(), Moved{{"Elm St 1"}});
    unit.commit();
  };
  const auto copy_keys = [&](const char* from, const test::TenantPlace& to) {
    fs::remove_all(to.dir.file("keys/acme"));
    fs::copy(place.dir.file("keys") + '/' + from, to.dir.file("keys/acme"));
  };
  std::stringstream exported;
  {
    Tenants tenants = place.open(options);
    for (const char* const name : {"acme", "globex"}) tenants.create(name);
    move_in(tenants, "1");
    fs::copy(place.dir.file("keys/acme"), place.dir.file("keys/early"));
    move_in(tenants, "2");
    export_store(*tenants.use("acme"), exported);
  }
  test::TenantPlace second;
  fs::create_directory(second.dir.file("data"));
  Store imported = sqlite::open(second.dir.file("data/acme.db"));
  Tenants moved = second.open(options);
  EXPECT_THAT([&] { moved.adopt("acme"); },
              ThrowsMessage<UsageError>(HasSubstr("import them first")));
  import_store(imported, exported);
  const auto lacks_keys = ThrowsMessage<UsageError>(HasSubstr(": put that at '"));
  EXPECT_THAT([&] { moved.adopt("acme", true); }, lacks_keys);
  fs::create_directory(second.dir.file("keys"));
  copy_keys("globex", second);
  EXPECT_THAT([&] { moved.adopt("acme", true); }, lacks_keys);
  copy_keys("early", second);
  EXPECT_THROW(moved.adopt("acme", true), KeysBehind);
  EXPECT_FALSE(moved.find("acme"));
  copy_keys("acme", second);
  EXPECT_THAT([&] { moved.adopt("acme"); }, ThrowsMessage<UsageError>(HasSubstr("--take-over")));
  moved.adopt("acme", true);
  move_in(moved, "3");
}

TEST_F(TenantsOfAFile, AreMadeAgainWhereThatWasInterrupted) {
  fs::create_directory(place.dir.file("data"));
  { const std::ofstream made{place.dir.file("data/acme.db")}; }
  fs::create_directories(place.dir.file("keys/acme"));
  { const std::ofstream made{place.dir.file("keys/acme/keys")}; }
  Tenants tenants = place.open({.keys = "keys/{tenant}/keys"});
  tenants.create("acme");
  place_order(*tenants.use("acme"), "1");
}

TEST_F(TenantsOfAFile, AreDroppedAlsoWhenTheyAreDamaged) {
  Tenants tenants = place.open();
  tenants.create("acme");
  const std::string file = tenants.place_of("acme");
  { const Tenants closed = std::move(tenants); }
  fs::rename(file, place.dir.file("well"));
  std::ofstream{file} << "damaged";
  Tenants again = place.open();
  EXPECT_THAT(
      [&] { again.drop("acme", "left", 0s); },
      ThrowsMessage<Error>(HasSubstr("the registry has the change, and the store doesn't")));
  EXPECT_EQ(again.find("acme")->state, TenantState::dropped);
  EXPECT_THAT([&] { again.erase("acme"); }, ThrowsMessage<Error>(HasSubstr("move it away")));
  fs::remove(file);
  EXPECT_EQ(again.erase("acme", true).state, TenantState::erased);
}

TEST_F(TenantsOfAFile, HaveKeysApartFromTheirStores) {
  for (const char* const keys :
       {"data/{tenant}.db", "data/{tenant}.db-wal", "data/{tenant}.db/keys"}) {
    EXPECT_THAT([&] { place.open({.keys = keys}); },
                ThrowsMessage<UsageError>(HasSubstr("keep them in two folders")))
        << keys;
  }
  place.open({.keys = "data/{tenant}.keys"}).create("acme");
}

}  // namespace
}  // namespace stela::tenants_test

// stela::open, which takes any engine's location, and the handle that it gives.
#include "support/histories.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>

namespace stela::test::open_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal_of(const std::string& location) {
  try {
    (void)open(location);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "it was opened";
}

TEST(Open, OpensAFileByItsPath) {
  const TempDir dir;
  Store store = open(dir.file("shop.db"));
  append(store, "order-1");
  EXPECT_EQ(sqlite::path(store), fs::canonical(dir.file("shop.db")));
  EXPECT_EQ(open("sqlite:" + dir.file("shop.db")).last_sequence(), GlobalSequence{1});
}

TEST(Open, RefusesEnginesThatThisBuildDoesNotHave) {
  EXPECT_THAT(refusal_of("mysql://app:secret@db/shop"),
              AllOf(HasSubstr("no engine for 'mysql://'"), Not(HasSubstr("secret"))));
  // With PostgreSQL's engine or without.
  EXPECT_THAT(refusal_of("postgresql://app:secret@db/%zz"),
              AllOf(AnyOf(HasSubstr("no engine for 'postgresql://'"),
                          HasSubstr("isn't a connection string of PostgreSQL's")),
                    Not(HasSubstr("secret"))));
  EXPECT_THAT(refusal_of("sqlite://shop.db"), HasSubstr("the path of its file"));
  EXPECT_THAT(refusal_of("file:///shop.db"), HasSubstr("is a URI"));
}

TEST(Open, RefusesKeywordsAndValues) {
  for (const char* const location :
       {"host=db dbname=shop user=app password=secret", " password = 'my secret' host=db",
        "postgresql:app:secret@db/shop", "jdbc:postgresql://db/shop?user=app&password=secret",
        "POSTGRESQL://app:secret@db/shop"}) {
    EXPECT_THAT(refusal_of(location),
                AllOf(HasSubstr("postgresql://user@host/database"), Not(HasSubstr("secret"))));
  }
  EXPECT_FALSE(is_on_server("./app:me@db"));
  EXPECT_FALSE(is_on_server("/data/app:me@db"));
  EXPECT_FALSE(is_on_server("me@db:1"));
  EXPECT_FALSE(is_on_server("./host=db"));
  EXPECT_FALSE(is_on_server("hosts=db"));
  EXPECT_FALSE(is_on_server("shop.db"));
  EXPECT_TRUE(is_on_server("postgresql://app@db/shop"));
}

TEST(Open, RefusesTheRestOfAUrlWithoutShowingIt) {
  for (const char* const location : {"postgresql//app:secret@db/shop", "//app:secret@db/shop",
                                     "app:secret@db/shop", "PASSWORD=secret"}) {
    EXPECT_THAT(refusal_of(location),
                AllOf(HasSubstr("postgresql://user@host/database"), Not(HasSubstr("secret"))));
  }
}

TEST(Store, ClosesItsDatabaseWhenAnotherIsAssigned) {
  static_assert(!std::is_copy_constructible_v<Store> && !std::is_copy_assignable_v<Store>);
  const TempDir dir;
  Store store = open(dir.file("one.db"));
  append(store, "order-1");

  store = open(dir.file("two.db"));

  EXPECT_EQ(store.last_sequence(), GlobalSequence{0});
  // Its log is in the file: nobody has it open.
  fs::copy_file(dir.file("one.db"), dir.file("copy.db"));
  EXPECT_EQ(open(dir.file("copy.db")).last_sequence(), GlobalSequence{1});
}

TEST(Store, KeepsItsDatabaseOpenWhenItIsMoved) {
  const TempDir dir;
  Store first = open(dir.file("shop.db"));
  const Uuid id = first.id();
  append(first, "order-1");
  {
    Store second = std::move(first);
    EXPECT_EQ(second.id(), id);
    EXPECT_EQ(&second.anchor(), &second.anchor().anchor());
    append(second.anchor(), "order-2");
    first = std::move(second);
  }
  EXPECT_EQ(first.last_sequence(), GlobalSequence{2});
}

}  // namespace
}  // namespace stela::test::open_test

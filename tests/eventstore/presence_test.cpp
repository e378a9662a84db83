// Who is there, by the bytes of the lock file.
#include "sqlite/presence.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/sqlite.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

namespace stela::sqlite::presence_test {
namespace {

class Presences : public ::testing::Test {
 protected:
  std::optional<bool> lives(std::int64_t number) { return Presence::lives(path, number); }

  test::TempDir dir;
  const std::string path = dir.file("shop.db");
};

TEST_F(Presences, AreSeenAsLongAsTheyLive) {
  std::optional<Presence> one{path};
  const Presence other{path};
  const std::int64_t number = one->number();
  EXPECT_EQ(lives(number), true);

  one.reset();
  EXPECT_EQ(lives(number), false);
  EXPECT_EQ(lives(other.number()), true);
}

TEST_F(Presences, AreSeenAgainAfterTheLockFileWasTidiedAway) {
  Presence presence{path};
  std::filesystem::remove(path + "-lock");
  EXPECT_EQ(lives(presence.number()), false);

  presence.renew();
  EXPECT_EQ(lives(presence.number()), true);
}

TEST_F(Presences, AreUnknownWhereTheyCannotBeRead) {
  const Presence in_memory{""};
  EXPECT_EQ(Presence::lives("", in_memory.number()), std::nullopt);
  EXPECT_EQ(lives(-1), std::nullopt);
}

}  // namespace
}  // namespace stela::sqlite::presence_test

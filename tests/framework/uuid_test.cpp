#include <stela/framework/uuid.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>

namespace stela::uuid_test {
namespace {

using namespace std::chrono_literals;

/// Always the same byte.
class OneByte final : public Random {
 public:
  explicit OneByte(std::uint8_t byte) : byte_{byte} {}
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = byte_;
  }

 private:
  std::uint8_t byte_;
};

constexpr Timestamp noon = std::chrono::sys_days{std::chrono::year{2026} / 11 / 21} + 12h;

TEST(Uuid, ReadsWhatItWrites) {
  const std::string text = "0190d3c0-1234-7abc-8def-00000000abcd";

  EXPECT_EQ(Uuid::parse(text)->to_string(), text);
  EXPECT_EQ(Uuid::parse("0190D3C0-1234-7ABC-8DEF-00000000ABCD")->to_string(), text);
  EXPECT_TRUE(Uuid::parse("00000000-0000-0000-0000-000000000000")->is_nil());
}

TEST(Uuid, ReadsNothingElse) {
  for (const std::string_view text :
       {"", "0190d3c0-1234-7abc-8def-00000000abc", "0190d3c0-1234-7abc-8def-00000000abcde",
        "0190d3c0x1234-7abc-8def-00000000abcd", "0190d3c012347abc8def00000000abcd",
        "{0190d3c0-1234-7abc-8def-00000000abc", "0190d3c0-1234-7abc-8def-00000000abcg",
        "0190d3c0-1234-7abc-8def-0000000-abcd", " 190d3c0-1234-7abc-8def-00000000abcd"}) {
    EXPECT_FALSE(Uuid::parse(text)) << text;
  }
}

TEST(UuidGenerator, WritesTheTimeTheVersionAndTheVariant) {
  OneByte ones{0xff};
  UuidGenerator generator{ones};

  // 48 bits of milliseconds (0x1a1fdfa4600), then 12 bits of the rest of one: 500/1000 of 4096.
  EXPECT_EQ(generator.next(noon).to_string(), "01a1fdfa-4600-7000-bfff-ffffffffffff");
  EXPECT_EQ(generator.next(noon + 500us).to_string(), "01a1fdfa-4600-7800-bfff-ffffffffffff");
}

TEST(UuidGenerator, IncreasesWithinAMomentAndWhenTheClockStepsBack) {
  OneByte zeros{0};
  UuidGenerator generator{zeros};
  Uuid last = generator.next(noon);
  for (int i = 0; i < 10000; ++i) {
    const Uuid next = generator.next(i % 2 == 0 ? noon : noon - 1h);
    ASSERT_LT(last, next);
    last = next;
  }
}

TEST(UuidGenerator, MakesIdsThatDiffer) {
  std::set<Uuid> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(make_uuid());
  EXPECT_EQ(ids.size(), 1000U);
}

TEST(UuidGenerator, GivesAForkedChildBytesOfItsOwn) {
  (void)make_uuid();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string text = make_uuid().to_string();
    _exit(write(pipe_ends[1], text.data(), 36) == 36 ? 0 : 1);
  }
  std::string text(36, ' ');
  ASSERT_EQ(read(pipe_ends[0], text.data(), 36), 36);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(pipe_ends[0]);
  close(pipe_ends[1]);

  // The time part differs anyway; the random part is what a fork could repeat.
  EXPECT_EQ(status, 0);
  EXPECT_NE(make_uuid().to_string().substr(19), text.substr(19));
}

}  // namespace
}  // namespace stela::uuid_test

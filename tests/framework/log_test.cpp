#include <stela/framework/log.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

namespace stela::log_test {
namespace {

using ::testing::MatchesRegex;

/// What comes on stderr meanwhile; little enough for a pipe to hold.
std::string stderr_of(const std::function<void()>& work) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return "no pipe";
  const int original = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  work();
  dup2(original, STDERR_FILENO);
  close(original);
  std::array<char, 4096> text{};
  const ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  close(ends[1]);
  return {text.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
}

TEST(LogToStderr, WritesALineWithTheFieldsThatTheMessageDoesNotContain) {
  const std::array fields{LogEntry::Field{"worker", "w1"}, LogEntry::Field{"partition", "p00"},
                          LogEntry::Field{"problem", "too large"}};

  const std::string text = stderr_of([&] {
    log_to_stderr().write({.level = LogLevel::error,
                           .name = "relay.stopped",
                           .message = "poison: too large",
                           .fields = fields});
  });

  EXPECT_THAT(text, MatchesRegex("20..-..-..T..:..:..Z error relay.stopped: poison: too large "
                                 "\\(worker=w1 partition=p00\\)\n"));
}

TEST(LogToStderr, WritesOneLineWhateverTheMessageHolds) {
  const std::string text = stderr_of([] {
    log_to_stderr().write({.level = LogLevel::info, .name = "a.b", .message = "one\ntwo\x1b[2J"});
  });

  EXPECT_THAT(text, MatchesRegex("[^ ]+ info a.b: one two .2J\n"));
}

TEST(LogToStderr, OmitsDebugEntries) {
  const std::string text = stderr_of([] {
    log_to_stderr().write({.level = LogLevel::debug, .name = "a.b", .message = "detail"});
  });

  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace stela::log_test

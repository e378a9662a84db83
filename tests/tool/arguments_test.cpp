#include "cli/arguments.hpp"
#include "cli/exit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::tool::arguments_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Parsed parsed(std::vector<const char*> words) {
  static const std::vector<Command> commands = all_commands();
  return parse(commands, words);
}

std::string refusal(std::vector<const char*> words) {
  try {
    parsed(std::move(words));
  } catch (const Misuse& e) {
    return e.what();
  }
  return "accepted";
}

TEST(ToolArguments, FindTheLongestCommand) {
  EXPECT_EQ(parsed({"events", "list"}).command->path, "events list");
  EXPECT_EQ(parsed({"--json", "events", "list", "--limit=3"}).command->path, "events list");
  EXPECT_EQ(parsed({}).command, nullptr);
  EXPECT_EQ(parsed({"events"}).command, nullptr);
  EXPECT_EQ(parsed({"events"}).group, "events");
}

TEST(ToolArguments, TakeValuesInBothForms) {
  const Parsed both =
      parsed({"--db", "a.db", "events", "list", "--limit=7", "--type", "a.b", "--type", "c.d"});
  EXPECT_EQ(both.arguments.text("--db"), "a.db");
  EXPECT_EQ(both.arguments.integer("--limit", {1, 10}), 7);
  EXPECT_THAT(both.arguments.all("--type"), ElementsAre("a.b", "c.d"));
  EXPECT_EQ(parsed({"events", "show", "--", "-17"}).arguments.operands().front(), "-17");
  EXPECT_TRUE(parsed({"events", "list", "-h"}).wants_help);
}

TEST(ToolArguments, GetASuggestionForATypo) {
  EXPECT_THAT(refusal({"evnets", "list"}), HasSubstr("Did you mean 'events'?"));
  EXPECT_THAT(refusal({"events", "lsit"}), HasSubstr("'events lsit'. Did you mean 'list'?"));
  EXPECT_THAT(refusal({"events", "list", "--limti", "3"}), HasSubstr("Did you mean '--limit'?"));
  EXPECT_THAT(refusal({"xyzzy"}), ::testing::Not(HasSubstr("Did you mean")));
}

TEST(ToolArguments, AreRefusedWithAReason) {
  EXPECT_THAT(refusal({"events", "list", "--limit"}), HasSubstr("--limit needs a value: N"));
  EXPECT_THAT(refusal({"outbox", "retry", "--error", "--dry-run"}),
              HasSubstr("--error needs a value: TEXT; one that begins with -- stands behind ="));
  EXPECT_THAT(refusal({"events", "list", "--json=yes"}), HasSubstr("--json takes no value"));
  EXPECT_THAT(refusal({"events", "list", "--limit", "1", "--limit", "2"}), HasSubstr("twice"));
  EXPECT_THAT(refusal({"events", "show"}), HasSubstr("needs EVENT"));
  EXPECT_THAT(refusal({"events", "show", "1", "2"}), HasSubstr("one word too many"));
  EXPECT_THAT(refusal({"--db", "x", "version"}), HasSubstr("no option --db"));
  EXPECT_THROW(to_integer("12x", "N", {0, 99}), Misuse);
  EXPECT_THROW(to_integer("100", "N", {0, 99}), Misuse);
  EXPECT_THROW(to_integer("99999999999999999999", "N", {0, 99}), Misuse);
}

TEST(ToolArguments, EveryCommandHasHelpAndAnExample) {
  for (const Command& command : all_commands()) {
    SCOPED_TRACE(command.path);
    EXPECT_FALSE(command.summary.empty());
    EXPECT_NE(command.summary.back(), '.');
    EXPECT_FALSE(command.examples.empty());
    EXPECT_NE(command.run, nullptr);
    for (const Option& option : command.options) {
      EXPECT_FALSE(option.summary.empty()) << option.name;
    }
  }
}

}  // namespace
}  // namespace stela::tool::arguments_test

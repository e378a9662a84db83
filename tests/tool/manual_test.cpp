// What is made from the table of commands.
#include "cli/command.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test::manual_test {
namespace {

using ::testing::AnyOfArray;
using ::testing::Each;
using ::testing::HasSubstr;

std::string content(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(ToolManual, TheReferencePagesAreThoseOfTheProgram) {
  EXPECT_EQ(content(STELA_SOURCE "/docs/reference/cli.md"), run_well({"manual", "--markdown"}))
      << "make it anew: stela manual --markdown > docs/reference/cli.md";
  EXPECT_EQ(content(STELA_SOURCE "/docs/reference/configuration.md"),
            run_well({"manual", "--settings"}))
      << "make it anew: stela manual --settings > docs/reference/configuration.md";
  EXPECT_EQ(content(STELA_SOURCE "/docs/reference/findings.md"), run_well({"manual", "--findings"}))
      << "make it anew: stela manual --findings > docs/reference/findings.md";
}

TEST(ToolManual, ThePageNamesEveryCommand) {
  const std::string page = run_well({"manual"});
  EXPECT_EQ(page.find(".TH STELA 1"), 0U);
  for (const char* command : {"outbox work", "events append", "projections rebuild", "doctor"}) {
    EXPECT_THAT(page, HasSubstr(std::string{".SS stela "} + command));
  }
}

/// The words of an example that are options, up to a pipe to another command.
std::vector<std::string> options_in(std::string_view example) {
  std::vector<std::string> options;
  std::istringstream words{std::string{example}};
  for (std::string word; words >> word && word != "|";) {
    if (word.starts_with("--")) options.push_back(word.substr(0, word.find('=')));
  }
  return options;
}

TEST(ToolManual, ExamplesCallTheirCommandWithOptionsThatItHas) {
  int examples = 0;
  for (const tool::Command& command : tool::all_commands()) {
    std::vector<std::string> known;
    for (const tool::Option& option : command.options) known.emplace_back(option.name);
    for (const tool::Option& option : tool::common_options()) known.emplace_back(option.name);
    for (const tool::Example& example : command.examples) {
      ++examples;
      EXPECT_THAT(" " + std::string{example.command} + " ",
                  HasSubstr(" " + std::string{command.path} + " "));
      EXPECT_THAT(options_in(example.command), Each(AnyOfArray(known))) << example.command;
    }
  }
  EXPECT_GT(examples, 50);
}

TEST(ToolManual, BashCompletesCommandsAndOptions) {
  const TempDir dir;
  std::ofstream{dir.file("stela.bash")} << run_well({"completion", "bash"});
  const auto completed = [&](const std::string& words, int at) {
    std::ofstream{dir.file("ask.bash")}
        << ". " << dir.file("stela.bash") << "\nCOMP_WORDS=(" << words << ")\nCOMP_CWORD=" << at
        << "\n_stela_complete\necho \"${COMPREPLY[@]}\" > " << dir.file("reply") << "\n";
    EXPECT_EQ(std::system(("bash " + dir.file("ask.bash")).c_str()), 0);
    return content(dir.file("reply"));
  };
  EXPECT_EQ(completed("stela out", 1), "outbox\n");
  EXPECT_EQ(completed("stela outbox re", 2), "reconcile republish retry\n");
  EXPECT_EQ(completed("stela outbox partitions re", 3), "resize resume retry\n");
  EXPECT_EQ(completed("stela outbox work --en", 3), "--ensure-stream\n");
  EXPECT_EQ(completed("stela outbox list --state p", 4), "pending parked published\n");
  EXPECT_EQ(completed("stela outbox enable --fence s", 4), "stream subject\n");
  EXPECT_EQ(completed("stela events list --limit 3 --log j", 6), "json\n");
  EXPECT_EQ(completed("stela outbox status --set nats.st", 4), "nats.stream=\n");
}

TEST(ToolManual, BashCompletesNamesInTheDatabase) {
  const TempDir dir;
  const std::string db = dir.file("a.db");
  run_well({"migrate", "--db", db});
  run_well({"outbox", "enable", "--db", db, "--partitions", "12"});
  std::ofstream{dir.file("stela.bash")} << run_well({"completion", "bash"});
  const auto completed = [&](const std::string& words, int at) {
    std::ofstream{dir.file("ask.bash")}
        << "stela() { " << program() << " \"$@\"; }\n. " << dir.file("stela.bash")
        << "\nCOMP_WORDS=(" << words << ")\nCOMP_CWORD=" << at
        << "\n_stela_complete\necho \"${COMPREPLY[@]}\" > " << dir.file("reply") << "\n";
    EXPECT_EQ(std::system(("bash " + dir.file("ask.bash")).c_str()), 0);
    return content(dir.file("reply"));
  };
  EXPECT_EQ(completed("stela outbox list --db " + db + " --partition p1", 6), "p10 p11\n");
  EXPECT_EQ(run_well({"completion", "--values", "projectors", "--db", db}), "");
}

TEST(ToolManual, OtherShellsHaveScriptsToo) {
  EXPECT_THAT(run_well({"completion", "zsh"}), HasSubstr("#compdef stela\n"));
  EXPECT_THAT(run_well({"completion", "fish"}), HasSubstr("complete -c stela -f\n"));
}

TEST(ToolManual, HelpIsWhereItIsLookedFor) {
  EXPECT_THAT(run_well({}), HasSubstr("Examples"));
  EXPECT_THAT(run_well({"--help"}), HasSubstr("outbox work"));
  EXPECT_THAT(run_well({"outbox"}), HasSubstr("outbox retry"));
  EXPECT_THAT(run_well({"outbox", "retry", "--help"}),
              HasSubstr("stela outbox retry --all --dry-run"));
  EXPECT_EQ(run_well({"--version"}), run_well({"version"}));
}

}  // namespace
}  // namespace stela::test::manual_test

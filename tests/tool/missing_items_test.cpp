// How a command ends whose item is missing, and one whose reader is gone.
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace stela::test::missing_items_test {
namespace {

using ::testing::HasSubstr;

class ToolMissingItems : public ToolOutbox {
 protected:
  /// In bash, which tells the exit code of each part of a pipe; "codes" and what stood on stderr.
  std::string shell(const std::string& pipe) const {
    std::ofstream{dir_.file("pipe.bash")} << "{ " << pipe << "; codes=\"${PIPESTATUS[*]}\"; } 2> "
                                          << dir_.file("err") << "\necho \"$codes\" > "
                                          << dir_.file("codes") << "\n";
    EXPECT_EQ(std::system(("bash " + dir_.file("pipe.bash")).c_str()), 0);
    return text_of("codes") + text_of("err");
  }
  std::string text_of(const std::string& name) const {
    std::ifstream stream{dir_.file(name)};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }
};

TEST_F(ToolMissingItems, AreNotFoundWhateverTheyAre) {
  const std::vector<std::vector<std::string>> calls{
      {"streams", "show", "order-99"},
      {"events", "list", "--stream", "order-99"},
      {"events", "show", "99"},
      {"events", "show", "0190a3b2-0000-7000-8000-000000000000"},
      {"outbox", "show", "99"},
      {"outbox", "list", "--stream", "order-99"},
      {"outbox", "list", "--partition", "p77"},
      {"outbox", "retry", "99"},
      {"outbox", "retry", "--stream", "order-99"},
      {"outbox", "discard", "99", "--yes"},
      {"outbox", "republish", "--stream", "order-99", "--yes"},
      {"outbox", "partitions", "adopt", "p77", "--yes"},
      {"outbox", "partitions", "resume", "p77"},
      {"outbox", "partitions", "retry", "p77"},
      {"projections", "retry", "orders"},
      {"projections", "remove", "orders", "--yes"},
      {"inbox", "retry", "1"},
      {"inbox", "pause", "billing"},
      {"snapshots", "drop", "--stream", "order-99", "--yes"}};
  for (std::vector<std::string> call : calls) {
    std::string words;
    for (const std::string& word : call) words += word + ' ';
    call.insert(call.end(), {"--db", db_});
    const Ran ran = run(call);
    EXPECT_EQ(ran.code, 3) << words << ran.err;
    call.push_back("--json");
    EXPECT_THAT(run(call).err, HasSubstr(R"("error":"not_found")")) << words;
  }
}

TEST_F(ToolMissingItems, AnOutboxIsOneOfThem) {
  const std::string plain = dir_.file("plain.db");
  run_well({"migrate", "--db", plain});
  EXPECT_EQ(run({"outbox", "status", "--db", plain}).code, 3);
  EXPECT_EQ(run({"outbox", "status", "--db", dir_.file("none.db")}).code, 3);
}

TEST_F(ToolMissingItems, AnEmptyListIsNone) {
  for (const std::vector<std::string>& call :
       std::vector<std::vector<std::string>>{{"outbox", "list", "--state", "parked"},
                                             {"outbox", "list", "--type", "order.lost"},
                                             {"events", "list", "--type", "order.lost"},
                                             {"outbox", "retry", "--all"}}) {
    std::vector<std::string> words = call;
    words.insert(words.end(), {"--db", db_});
    EXPECT_EQ(run(words).code, 0) << call[1];
  }
}

TEST_F(ToolMissingItems, AReaderThatLeavesIsNoFailure) {
  std::string lines;
  for (int i = 0; i < 4'000; ++i) {
    lines += "{\"stream\":\"order-1\",\"data\":{\"note\":\"" + std::string(64, 'x') + "\"}}\n";
  }
  run_well({"events", "append", "--db", db_, "--stdin", "--type", "order.noted"}, {.input = lines});
  EXPECT_EQ(shell(program() + " events list --limit 4000 --db " + db_ + " | head -n 1"), "141 0\n");
  EXPECT_EQ(shell(program() + " export --db " + db_ + " | head -n 1"), "141 0\n");
  EXPECT_EQ(shell("timeout 20 " + program() + " events tail --db " + db_ + " | head -n 1"),
            "141 0\n");
  EXPECT_EQ(shell(program() + " outbox status --watch 100ms --db " + db_ + " | head -n 1"),
            "141 0\n");
}

TEST_F(ToolMissingItems, AFullDiskForStdoutIsAFailure) {
  EXPECT_THAT(shell(program() + " events list --db " + db_ + " > /dev/full"),
              HasSubstr("1\nstela: stdout can't be written"));
}

}  // namespace
}  // namespace stela::test::missing_items_test

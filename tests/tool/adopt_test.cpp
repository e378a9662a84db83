// How stopped partitions are adopted.
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Adopting : public ToolOutbox {
 protected:
  void stop(const std::string& reason, const std::string& which = "1") const {
    RawSqlite{db_}.run("UPDATE outbox_partitions SET stopped = '" + reason +
                       "', stopped_detail = 'as it says' WHERE " + which);
  }
  std::string stopped() const { return member(outbox({"status", "--json"}).out, "stopped"); }
};

TEST_F(Adopting, ResumesAllStoppedPartitionsAtOnce) {
  ASSERT_EQ(outbox({"partitions", "resize", "16"}).code, 0);
  stop("broker_lost");

  const Ran asked = outbox({"partitions", "adopt", "--all"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_THAT(asked.err, AllOf(HasSubstr("p00 p01"), HasSubstr("--yes")));
  EXPECT_EQ(stopped(), "17");

  const Ran adopted = outbox({"partitions", "adopt", "--all", "--yes"});
  EXPECT_EQ(adopted.code, 0);
  EXPECT_THAT(adopted.err, AllOf(HasSubstr("Partition p00 resumes"), HasSubstr("Partition p15")));
  EXPECT_EQ(stopped(), "0");
}

TEST_F(Adopting, LeavesWhatNeedsAnotherWayOut) {
  ASSERT_EQ(outbox({"partitions", "resize", "4"}).code, 0);
  stop("poison");
  stop("unreadable", "partition = (SELECT max(partition) FROM outbox_partitions)");

  const Ran adopted = outbox({"partitions", "adopt", "--all", "--yes"});

  EXPECT_EQ(adopted.code, 0);
  EXPECT_THAT(adopted.err, AllOf(HasSubstr("Partition p03 resumes"),
                                 HasSubstr("Partition p00 stays stopped (poison) → fix the cause"),
                                 Not(HasSubstr("Partition p00 resumes"))));
  EXPECT_EQ(stopped(), "4");
  EXPECT_THAT(outbox({"partitions", "adopt", "--all", "--yes"}).err,
              HasSubstr("No partition to adopt"));
}

TEST_F(Adopting, TakesEitherOnePartitionOrAll) {
  stop("broker_lost");
  EXPECT_THAT(outbox({"partitions", "adopt"}).err, HasSubstr("Pass PARTITION or --all"));
  EXPECT_THAT(outbox({"partitions", "adopt", "all", "--all"}).err,
              HasSubstr("Pass PARTITION or --all"));
  EXPECT_THAT(outbox({"partitions", "adopt", "--all", "--broker-sequence", "1"}).err,
              HasSubstr("--broker-sequence is of one partition"));
  EXPECT_EQ(stopped(), "1");
}

}  // namespace
}  // namespace stela::test

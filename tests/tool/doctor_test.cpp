// What doctor says of the broker.
#include "nats/jetstream.hpp"
#include "support/nats_server.hpp"
#include "support/secret_file.hpp"
#include "tool/tool_outbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stela::test::doctor_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ToolOutbox, DoctorMakesNoStream) {
  const NatsServer nats;
  const auto doctor = [&] {
    return run({"doctor", "--db", db_, "--nats", nats.url(), "--stream", "SHOP", "--set",
                "nats.ensure_stream=true"});
  };
  EXPECT_THAT(doctor().out, HasSubstr("there is no JetStream stream 'SHOP'"));
  EXPECT_THAT(doctor().out, HasSubstr("there is no JetStream stream 'SHOP'"));
}

TEST_F(ToolOutbox, DoctorAdvisesNoWorkerWhereAllThatWaitsIsStopped) {
  const std::vector<std::string> doctor{"doctor", "--db", db_};
  EXPECT_THAT(run(doctor).out, HasSubstr("'stela outbox work'"));

  RawSqlite{db_}.run("UPDATE outbox_partitions SET stopped = 'broker_lost'");

  EXPECT_THAT(run(doctor).out, AllOf(HasSubstr("pending messages are in stopped partitions"),
                                     Not(HasSubstr("'stela outbox work'"))));
}

TEST_F(ToolOutbox, DoctorNamesAStoppedPartitionOnce) {
  const NatsServer nats;
  const std::vector<std::string> broker{"--nats", nats.url(), "--stream", "SHOP"};
  std::vector<std::string> work{"work", "--until-empty", "--silent", "--ensure-stream"};
  work.insert(work.end(), broker.begin(), broker.end());
  ASSERT_EQ(outbox(work).code, 0);
  RawSqlite{db_}.run(
      "UPDATE outbox_partitions SET stopped = 'broker_lost', attempts = 2, last_error = 'again', "
      "broker_sequence = 9");

  std::vector<std::string> doctor{"doctor", "--db", db_};
  doctor.insert(doctor.end(), broker.begin(), broker.end());
  EXPECT_THAT(run(doctor).out,
              AllOf(HasSubstr("all is stopped (broker_lost)"), Not(HasSubstr("all is backing off")),
                    Not(HasSubstr("partition all ends at 3, before what was published"))));
}

TEST_F(ToolOutbox, DoctorAdvisesOnMissingAndSealedStreams) {
  const NatsServer nats;
  const std::vector<std::string> broker{"--nats", nats.url(), "--stream", "SHOP"};
  const auto doctor = [&] {
    return run({"doctor", "--db", db_, "--nats", nats.url(), "--stream", "SHOP"}).out;
  };
  EXPECT_THAT(doctor(), HasSubstr("create the stream with 'stela outbox work --ensure-stream'"));

  std::vector<std::string> work{"work", "--until-empty", "--silent", "--ensure-stream"};
  work.insert(work.end(), broker.begin(), broker.end());
  ASSERT_EQ(outbox(work).code, 0);
  JetStream{nats.url()}.update_stream("SHOP", [](jsStreamConfig& config) { config.Sealed = true; });

  EXPECT_THAT(doctor(), HasSubstr("a sealed stream can't be changed: use another one"));
}

TEST_F(ToolOutbox, DoctorAdvisesOnTheBroker) {
  const NatsServer nats{"authorization { user: shop, password: right }"};
  const std::string file = write_secret(dir_.file("password"), "wrong");
  EXPECT_THAT(run({"doctor", "--db", db_, "--nats", nats.url(), "--stream", "SHOP", "--set",
                   "nats.user=shop", "--set", "nats.password_file=" + file})
                  .out,
              AllOf(HasSubstr("it answers and refuses: correct the credentials"),
                    Not(HasSubstr("start it"))));
}

TEST_F(ToolOutbox, DoctorAdvisesToChangeAStreamThatDoesNotFit) {
  const NatsServer nats;
  ASSERT_EQ(outbox({"work", "--until-empty", "--silent", "--ensure-stream", "--stream", "SHOP",
                    "--nats", nats.url()})
                .code,
            0);
  const auto doctor = [&](const std::string& prefix) {
    return run({"doctor", "--db", db_, "--nats", nats.url(), "--stream", "SHOP", "--prefix",
                prefix})
        .out;
  };
  EXPECT_THAT(doctor("elsewhere"),
              AllOf(HasSubstr("doesn't take the subjects"),
                    HasSubstr("change the stream as it says"), Not(HasSubstr("--ensure-stream"))));
  EXPECT_THAT(doctor("stela"), AllOf(HasSubstr("there for 1 partition, none shorter"),
                                     Not(HasSubstr("hold what was published"))));
}

}  // namespace
}  // namespace stela::test::doctor_test

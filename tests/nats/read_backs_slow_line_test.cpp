// Reading partitions back over a line that carries little: what is asked for comes in time.
#include "nats/api_replies.hpp"
#include "read_backs.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

namespace stela::nats::read_backs_slow_line_test {
namespace {

using namespace std::chrono_literals;
using test::message_of;
using test::options_of;
using test::stream_of;
using Kind = Answer::Kind;

/// Sixteen partitions, read back over a line by a relay that asks again a second after an answer
/// that was too late.
class ReadingOverASlowLine : public ::testing::Test {
 protected:
  static constexpr int partitions = 16;

  /// Until everything has been read, or so much time has passed.
  void run(std::chrono::seconds limit) {
    for (int i = 1; i <= partitions; ++i) at(0ms, [this, i] { begin(i); });
    while (!events_.empty() && events_.begin()->first <= start_ + limit && done < partitions) {
      now = events_.begin()->first;
      const auto event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
  }

  /// Of each partition's stream.
  std::uint64_t last = 40;
  std::size_t payload = 64 * 1024;
  std::int64_t bytes_a_second = 1'000'000;
  /// Of a round trip.
  std::chrono::milliseconds latency = 0ms;
  PublisherOptions options = options_of(Fence::stream);
  ReadBacks::Time now{};
  int done = 0;
  int missed = 0;
  std::string why;
  std::int64_t sent_bytes = 0;
  /// Of these, those of replies about streams.
  std::int64_t info_bytes = 0;

  std::int64_t bytes_of_all() const {
    std::int64_t of_one = 0;
    for (std::uint64_t i = 1; i <= last; ++i) of_one += std::ssize(message_of(i, payload));
    return partitions * of_one;
  }

 private:
  struct Partition {
    std::uint64_t from = 1;
    std::uint64_t request = 0;
  };

  void at(std::chrono::nanoseconds wait, std::function<void()> event) {
    events_.emplace(now + wait, std::move(event));
  }
  void begin(int index) {
    Partition& partition = partitions_[index];
    const std::uint64_t request = partition.request = ++last_request_;
    at(options.publish_timeout, [this, index, request] {
      if (partitions_[index].request == request) miss(index);
    });
    pass(all_.begin(request, PartitionId{index}, partition.from, now));
  }
  void miss(int index) {
    ++missed;
    partitions_[index].request = 0;
    at(1s, [this, index] { begin(index); });
  }
  void pass(const Steps& steps) {
    for (const ApiRequest& request : steps.requests) serve(request);
    for (const Answer& answer : steps.answers) take(answer);
  }
  void serve(const ApiRequest& request) {
    const bool is_read = !request.body.empty();
    const std::string reply =
        is_read ? message_of(std::stoull(request.body.substr(request.body.find(':') + 1)), payload)
                : stream_of(1, last, payload);
    sent_bytes += std::ssize(reply);
    if (!is_read) info_bytes += std::ssize(reply);
    free_from_ = std::max(free_from_, now + latency) +
                 std::chrono::nanoseconds{std::ssize(reply) * (1'000'000'000 / bytes_a_second)};
    at(free_from_ - now,
       [this, number = request.number, reply] { pass(all_.on_reply(number, reply, now)); });
  }
  void take(const Answer& answer) {
    for (auto& [index, partition] : partitions_) {
      if (partition.request != answer.request) continue;
      if (answer.kind != Kind::read_back) {
        why = answer.detail;
        return miss(index);
      }
      partition.from = answer.last_sequence + 1;
      partition.request = 0;
      EXPECT_EQ(answer.has_more, partition.from <= last);
      if (!answer.has_more) {
        ++done;
      } else {
        begin(index);
      }
      return;
    }
  }

  const SubjectLayout layout_{options};
  ReadBacks all_{options, layout_};
  const ReadBacks::Time start_{};
  ReadBacks::Time free_from_{};
  std::multimap<ReadBacks::Time, std::function<void()>> events_;
  std::map<int, Partition> partitions_;
  std::uint64_t last_request_ = 0;
};

TEST_F(ReadingOverASlowLine, AsksForNothingThatIsLateAlready) {
  run(600s);

  EXPECT_EQ(done, partitions);
  EXPECT_LE(missed, partitions) << why;
  // As much as there is, and half of that again.
  EXPECT_LE(sent_bytes, partitions * static_cast<std::int64_t>(last * payload) * 3 / 2);
}

/// Late replies are on the line nevertheless: who asks for as much again only adds to them.
TEST_F(ReadingOverASlowLine, AsksForLessOnceRepliesAreTooLate) {
  options.publish_timeout = 700ms;
  last = 2'000;
  payload = 600;
  bytes_a_second = 170'000;

  run(1'800s);

  EXPECT_EQ(done, partitions) << why;
}

struct ReadingSmallMessagesOverASlowLine : ReadingOverASlowLine,
                                           ::testing::WithParamInterface<std::int64_t> {};

TEST_P(ReadingSmallMessagesOverASlowLine, UsesNearlyAllThatComes) {
  last = 125;
  payload = 400;  // 300 bytes, in base64
  bytes_a_second = GetParam();
  latency = 100ms;

  run(std::chrono::seconds{2 * bytes_of_all() / bytes_a_second});

  EXPECT_EQ(done, partitions) << why;
  EXPECT_LE(missed, partitions);
  EXPECT_LE(sent_bytes - info_bytes, bytes_of_all() * 3 / 2);
}
INSTANTIATE_TEST_SUITE_P(BytesASecond, ReadingSmallMessagesOverASlowLine,
                         ::testing::Values(100'000, 20'000));

}  // namespace
}  // namespace stela::nats::read_backs_slow_line_test

#include "asked_broker.hpp"

#include "broker.hpp"

#include <algorithm>
#include <utility>

namespace stela::tool {
namespace {

nats::PublisherOptions options_to_look(const Settings& settings, Fence fence,
                                       const Partitioner& partitioner) {
  nats::PublisherOptions options = broker_options(settings, fence, partitioner);
  options.ensure_stream = false;
  return options;
}

}  // namespace

void AskedBroker::Answers::take(Answer answer) {
  const std::lock_guard lock{mutex_};
  answers_.push_back(std::move(answer));
  came_.notify_one();
}

std::optional<Answer> AskedBroker::Answers::wait(std::chrono::milliseconds limit) {
  std::unique_lock lock{mutex_};
  if (!came_.wait_for(lock, limit, [&] { return !answers_.empty(); })) return std::nullopt;
  Answer first = std::move(answers_.front());
  answers_.pop_front();
  return first;
}

AskedBroker::AskedBroker(const Settings& settings, Fence fence, const Partitioner& partitioner)
    : limit_{settings.duration("nats.connect_timeout") + std::chrono::seconds{1}},
      publisher_{options_to_look(settings, fence, partitioner)} {}

AskedBroker::~AskedBroker() {
  publisher_.disconnect();
}

std::optional<Answer> AskedBroker::connect() {
  publisher_.connect(1, answers_);
  return answers_.wait(limit_);
}

std::optional<Answer> AskedBroker::read_back(PartitionId partition, std::uint64_t from) {
  publisher_.read_back(++request_, partition, std::max<std::uint64_t>(1, from));
  publisher_.flush();
  return answers_.wait(limit_);
}

BrokerLook look_at_broker(const Settings& settings, const OutboxStatus& status,
                          const Partitioner& partitioner) {
  AskedBroker broker{settings, status.fence, partitioner};
  BrokerLook look{.url = settings.text("nats.url"), .connected = broker.connect()};
  if (!look.is_connected()) return look;
  for (const PartitionStatus& partition : status.partitions) {
    look.streams.push_back(
        {partition.id, broker.read_back(partition.id, partition.broker_sequence)});
    if (!look.streams.back().answer) break;
  }
  return look;
}

}  // namespace stela::tool

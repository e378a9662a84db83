// A broker that a command queries, waiting for each answer.
#pragma once

#include "cli/settings.hpp"
#include "diagnosis/diagnose.hpp"

#include <stela/nats/publisher.hpp>
#include <stela/outbox/partitioner.hpp>
#include <stela/outbox/publisher.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

namespace stela::tool {

/// The configured broker. Only reads from it and creates nothing. Threads: one at a time.
class AskedBroker {
 public:
  AskedBroker(const Settings& settings, Fence fence, const Partitioner& partitioner);
  ~AskedBroker();
  AskedBroker(const AskedBroker&) = delete;
  AskedBroker& operator=(const AskedBroker&) = delete;

  /// Empty if no answer came in time.
  std::optional<Answer> connect();
  /// As Publisher::read_back. Call it once it is connected; empty if no answer came in time.
  std::optional<Answer> read_back(PartitionId partition, std::uint64_t from);

 private:
  class Answers final : public AnswerSink {
   public:
    void take(Answer answer) override;
    std::optional<Answer> wait(std::chrono::milliseconds limit);

   private:
    std::mutex mutex_;
    std::condition_variable came_;
    /// Guarded by mutex_.
    std::deque<Answer> answers_;
  };

  const std::chrono::milliseconds limit_;
  Answers answers_;
  nats::Publisher publisher_;
  std::uint64_t request_ = 0;
};

/// Examines the broker and the stream of each partition.
BrokerLook look_at_broker(const Settings& settings, const OutboxStatus& status,
                          const Partitioner& partitioner);

}  // namespace stela::tool

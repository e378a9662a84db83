// Measures how long the broker takes to answer.
#pragma once

#include "worker/statistics.hpp"

#include <stela/outbox/publisher.hpp>

#include <mutex>
#include <unordered_map>
#include <utility>

namespace stela::tool {

/// Forwards everything. Threads: as the publisher that it measures.
class MeasuredPublisher final : public Publisher, private AnswerSink {
 public:
  /// Both must outlive it.
  MeasuredPublisher(Publisher& publisher, Statistics& statistics)
      : publisher_{publisher}, statistics_{statistics} {}

  bool can(Fence fence) const noexcept override { return publisher_.can(fence); }
  bool can(Codec codec) const noexcept override { return publisher_.can(codec); }
  void connect(std::uint64_t session, AnswerSink& sink) override;
  void disconnect() noexcept override { publisher_.disconnect(); }
  void publish(const OutgoingMessage& message) override;
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override {
    publisher_.read_back(request, partition, from);
  }
  void probe(std::uint64_t request) override { publisher_.probe(request); }
  void flush() override { publisher_.flush(); }

 private:
  void take(Answer answer) override;

  Publisher& publisher_;
  Statistics& statistics_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<std::uint64_t, Steady> sent_;
  AnswerSink* sink_ = nullptr;
};

}  // namespace stela::tool

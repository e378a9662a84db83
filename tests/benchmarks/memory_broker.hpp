// A broker in memory: what relays publish to while nothing but the relay is measured.
#pragma once

#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stela::bench {

/// One stream. Takes a copy of each message, as the send buffer of a client does, and keeps the
/// last one's id.
/// Threads: one at a time.
class MemoryBroker {
 public:
  /// The sequence that the message gets.
  std::uint64_t store(std::string_view subject, std::string_view id, std::string_view headers,
                      std::string_view payload);

  std::uint64_t last() const noexcept { return last_; }
  const std::string& last_id() const noexcept { return last_id_; }

 private:
  void copy(std::string_view bytes);

  std::vector<char> buffer_ = std::vector<char>(1024 * 1024);
  std::size_t used_ = 0;
  std::uint64_t last_ = 0;
  std::string last_id_;
};

/// Answers at once, and keeps the fence.
/// Threads: one at a time.
class MemoryPublisher : public Publisher {
 public:
  bool can(Fence fence) const noexcept override { return fence == Fence::stream; }
  bool can(Codec) const noexcept override { return true; }

  void connect(std::uint64_t session, AnswerSink& sink) override;
  void disconnect() noexcept override { sink_ = nullptr; }
  void publish(const OutgoingMessage& message) override;
  /// Knows the last message only: all that a relay asks for that lost no answer.
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override;
  void probe(std::uint64_t request) override;
  void flush() override {}

 private:
  MemoryBroker broker_;
  std::uint64_t session_ = 0;
  AnswerSink* sink_ = nullptr;
  std::string store_id_;
  GlobalSequence last_event_ = {};
};

}  // namespace stela::bench

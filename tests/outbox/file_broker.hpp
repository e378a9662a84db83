// A message broker in a file: JetStream's rules about sequences, for any number of processes.
#pragma once

#include "support/raw_sqlite.hpp"

#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace stela::test {

/// Keeps what is published in a database of its own, a stream for each partition; what it answered
/// survives the death of whoever sent it. It has no window for duplicates: nothing but the expected
/// sequence keeps a message from being stored twice.
/// Threads: one at a time.
class FileBroker final : public Publisher {
 public:
  FileBroker(const std::string& path, Fence fence);

  bool can(Fence fence) const noexcept override { return fence == fence_; }
  void connect(std::uint64_t session, AnswerSink& sink) override;
  void disconnect() noexcept override;
  void publish(const OutgoingMessage& message) override;
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override;
  void probe(std::uint64_t request) override;
  void flush() override;

  /// Answers some messages otherwise, and doesn't store them.
  std::function<std::optional<Answer::Kind>(const OutgoingMessage&)> refuse;
  /// Nobody answers.
  bool is_down = false;
  /// It takes sessions, and answers nothing in them; or nothing but probes.
  bool is_deaf = false;
  bool is_isolated = false;
  /// Called instead of an answer: time passes.
  std::function<void()> when_silent = [] {};
  /// How often somebody wanted a session.
  int sessions = 0;
  /// How it can be set up wrong: reads are answered and messages refused, or who publishes is shown
  /// the door, or partitions have no stream.
  bool is_sealed = false;
  bool forbids_publishing = false;
  std::set<PartitionId> without_stream;
  /// How often it said so.
  int misfits = 0;
  void mend();
  /// Called between storing what was sent and answering it.
  std::function<void()> after_storing;

  /// What stands in a partition's stream from a sequence on.
  std::vector<FoundMessage> stored(PartitionId partition, std::uint64_t from = 1);
  /// What stands in a partition's stream: "1 2 4 3r1": sequences, and which redelivery it was.
  std::string log(PartitionId partition);
  /// The same of all of them, as "all: 1 2 3", in the order of the partitions' numbers.
  std::vector<std::string> logs();
  RawSqlite& database() noexcept { return database_; }

 private:
  struct Request {
    std::uint64_t number = 0;
    int partition = 0;
    std::optional<std::uint64_t> expected = {};
    std::string row = {};
    std::optional<Answer::Kind> refused = {};
  };

  Answer store(const Request& request);

  const Fence fence_;
  RawSqlite database_;
  AnswerSink* sink_ = nullptr;
  std::uint64_t session_ = 0;
  std::vector<Request> sent_;
};

}  // namespace stela::test

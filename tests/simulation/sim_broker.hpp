// A broker, the network before it, and a publisher for each worker.
#pragma once

#include "simulation/jetstream_model.hpp"
#include "simulation/truth.hpp"
#include "simulation/world.hpp"

#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

namespace stela::sim {

/// How bad things are at the moment.
struct NetworkFaults {
  Time slowest = 2 * ms;
  double lose_reply = 0;
  /// After a connection's death: the chance that what it had sent still arrives, and how late.
  double late_bytes = 0;
  Time latest_bytes = 20 * second;
};

/// The server: one stream for each partition, or one for all.
class SimBroker {
 public:
  SimBroker(World& world, Truth& truth, Fence fence, const StreamLimits& limits)
      : world_{world}, truth_{truth}, fence_{fence}, limits_{limits} {}

  bool is_up() const noexcept { return up_; }
  /// Every connection breaks, and none can be made.
  void go_down();
  void come_back();

  /// Refuses with "full".
  void set_full(bool full) noexcept { full_ = full; }
  /// There is no such stream.
  void set_missing(bool missing) noexcept { missing_ = missing; }
  /// These events are too large, for ever; these are rejected as long as they stand here.
  std::set<std::int64_t> too_large;
  std::set<std::int64_t> rejected;

  Answer publish(PartitionId partition, const Sent& message, std::uint64_t request);
  Answer read_back(PartitionId partition, std::uint64_t request, std::uint64_t from);

  JetStreamModel& stream(PartitionId partition);
  NetworkFaults faults;
  World& world() noexcept { return world_; }
  Fence fence() const noexcept { return fence_; }

  /// Told when a connection is to break.
  std::map<int, std::function<void()>> connections;
  /// How often each kind of answer was given.
  std::map<Answer::Kind, std::int64_t> answers;

 private:
  static std::string subject(PartitionId partition) { return "sim." + partition.label(); }

  World& world_;
  Truth& truth_;
  const Fence fence_;
  const StreamLimits limits_;
  std::map<PartitionId, JetStreamModel> streams_;
  bool up_ = true;
  bool full_ = false;
  bool missing_ = false;
};

/// A worker's client. Bytes of one connection arrive in order; those of a dead one may arrive late,
/// or not at all.
class SimPublisher final : public Publisher {
 public:
  /// `deliver` hands an answer to the worker.
  SimPublisher(SimBroker& broker, int worker, std::function<void(const Answer&)> deliver);
  ~SimPublisher() override;

  bool can(Fence) const noexcept override { return true; }
  void connect(std::uint64_t session, AnswerSink&) override;
  void disconnect() noexcept override;
  void publish(const OutgoingMessage& message) override;
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override;
  void flush() override {}

  /// The connection breaks without the worker's doing.
  void break_connection();

 private:
  /// What stands between one client and the server.
  struct Connection {
    std::uint64_t session = 0;
    bool alive = true;
    /// When its last byte arrives: nothing overtakes it.
    Time last_arrival = 0;
    Time last_reply = 0;
    std::uint64_t sent = 0;
    /// After its death: how many of the requests that were sent still arrive.
    std::uint64_t arrives_until = UINT64_MAX;
    /// Not before then, all the same.
    Time late_until = 0;
    /// Only called while it is alive: then its publisher is too.
    std::function<void(const Answer&)> deliver;
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  using Request = std::function<Answer(SimBroker&)>;
  void send(Request request);
  static void arrive(SimBroker& broker, const ConnectionPtr& connection, std::uint64_t number,
                     const Request& request);
  static void reply(SimBroker& broker, const ConnectionPtr& connection, Answer answer);
  void die();

  SimBroker& broker_;
  const int worker_;
  std::function<void(const Answer&)> deliver_;
  ConnectionPtr connection_;
};

}  // namespace stela::sim

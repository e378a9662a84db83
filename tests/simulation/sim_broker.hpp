// A broker, and the network before it.
#pragma once

#include "simulation/jetstream_model.hpp"
#include "simulation/plan.hpp"
#include "simulation/truth.hpp"
#include "simulation/world.hpp"

#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
  SimBroker(World& world, Truth& truth, Fence fence, const StreamLimits& limits, const Line& line)
      : world_{world}, truth_{truth}, fence_{fence}, limits_{limits}, line_{line} {}

  bool is_up() const noexcept { return up_; }
  /// Every connection breaks, and none can be made.
  void go_down();
  void come_back();

  /// Until when these workers, and no others, can't connect.
  std::map<int, Time> unreachable;
  bool is_reachable(int worker) const {
    const auto found = unreachable.find(worker);
    return up_ && (found == unreachable.end() || found->second <= world_.now());
  }

  /// Until when the streams of these partitions, and no others, fail.
  struct StreamOutage {
    Outage kind = Outage::silent;
    Time until = 0;
  };
  std::map<PartitionId, StreamOutage> outages;

  /// Refuses with "full".
  void set_full(bool full) noexcept { full_ = full; }
  /// There is no such stream.
  void set_missing(bool missing) noexcept { missing_ = missing; }
  /// Who publishes isn't allowed to, and is told so for the session, not for the message.
  void set_forbidding(bool forbids) noexcept { forbids_ = forbids; }
  /// These events are too large, for ever; these are rejected as long as they stand here.
  std::set<std::int64_t> too_large;
  std::set<std::int64_t> rejected;
  /// So many messages are rejected, whatever they are.
  int refusals = 0;

  /// No answer if the server gives none.
  std::optional<Answer> publish(PartitionId partition, const Sent& message, std::uint64_t request);
  std::optional<Answer> read_back(PartitionId partition, std::uint64_t request, std::uint64_t from);

  /// A read-back that takes longer answers with what it has.
  Time longest_read = second;
  /// When so many questions are answered that are asked now, behind those of others.
  Time answer_questions(std::size_t count) noexcept;

  JetStreamModel& stream(PartitionId partition);
  NetworkFaults faults;
  /// The client keeps what it couldn't send, and sends it when it is connected again: for
  /// `reconnect_buffer`.
  bool clients_buffer = false;
  /// The client reads one partition back after the other: for `read_backs_one_by_one`.
  bool clients_queue = false;
  /// How often a fault hit something that was being published.
  std::int64_t hits = 0;
  /// Asked for each reply: may lose it, or break the connection that it comes on.
  std::function<bool(int worker)> on_reply;
  /// Asked for each message that is sent: a value has its connection die, and its bytes arrive late
  /// (true) or never.
  std::function<std::optional<bool>(int worker)> on_message;
  /// Told of each message that it stores.
  std::function<void(PartitionId, std::uint64_t)> on_stored;

  /// Every connection breaks.
  void break_all();
  /// Something that isn't ours, to the partition's end.
  void write_foreign(PartitionId partition);
  /// The last of our events that stands there; 0 for none.
  std::int64_t last_event(PartitionId partition);
  static PartitionId partition_of(std::string_view subject);
  World& world() noexcept { return world_; }
  Truth& truth() noexcept { return truth_; }
  const StreamLimits& limits() const noexcept { return limits_; }
  Fence fence() const noexcept { return fence_; }
  const Line& line() const noexcept { return line_; }

  /// Told when a connection is to break, and when the server is there again.
  struct Client {
    std::function<void()> broken;
    std::function<void()> back;
  };
  std::map<int, Client> clients;

 private:
  static std::string subject(PartitionId partition) { return "sim." + partition.label(); }
  std::optional<Outage> outage_of(PartitionId partition) const;
  Answer store(PartitionId partition, const Sent& message, std::uint64_t request);
  Answer find(PartitionId partition, std::uint64_t request, std::uint64_t from);

  World& world_;
  Truth& truth_;
  const Fence fence_;
  const StreamLimits limits_;
  const Line line_;
  Time questions_until_ = 0;
  std::map<PartitionId, JetStreamModel> streams_;
  bool up_ = true;
  bool full_ = false;
  bool missing_ = false;
  bool forbids_ = false;
};

}  // namespace stela::sim

// A relay worker without its driver: leases, the broker session, and the lanes of its partitions.
#pragma once

#include "relay/core.hpp"
#include "relay/fenced_lane.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stela::relay {

/// A state machine. Its driver passes in the broker's answers, and calls `run_due` after that, at
/// its deadline, and after commits. It acts only inside these calls. They wait out all trouble
/// except SchemaMismatch, which they throw: a newer Stela migrated the database, and this worker
/// can do no more in it. Threads: one at a time.
class Worker {
 public:
  struct Ports {
    OutboxPort& store;
    Publisher& publisher;
    const Clock& clock;
    Random& random;
    Observer& observer;
    AnswerSink& answers;
  };

  /// `options` must be checked and name the worker.
  Worker(const RelayOptions& options, Fence fence, const Ports& ports);

  /// Joins the other workers and takes free partitions.
  void start();
  /// Stops sending; once `is_stopped`, everything is handed over.
  void stop();
  bool is_stopped() const noexcept { return stopped_; }

  void on_answer(const Answer& answer);
  /// Does what is due.
  void run_due();
  /// When to call `run_due` next, if nothing happens before.
  Steady deadline() const;

  const Counts& counts() const noexcept { return core_.counts; }
  std::size_t active_workers() const noexcept { return active_workers_; }
  std::size_t wanted_partitions() const noexcept { return share_; }
  std::size_t owned_partitions() const noexcept;
  BrokerStatus broker_status() const;
  /// Nothing is in flight or being asked.
  bool is_idle() const noexcept;
  bool is_connecting() const noexcept { return broker_ == Broker::connecting; }

 private:
  /// Lets the lanes send in turn, for a bounded time.
  void pump();
  void beat();
  /// The server answers requests, not only probes.
  bool is_served() const;
  /// Records when this changes.
  void watch_service();
  /// It is cut off after a lease's length without service, until it has been served for a while.
  void judge_broker();
  /// Asks about a partition that it doesn't own, to see whether the server answers for any.
  void ask_for_service();
  /// It takes no partition until it is sure that no other worker has its name.
  bool may_look() const noexcept { return has_name_ && !stopping_; }
  void look();
  void watch_membership(const Overview& overview);
  /// While some workers can reach the broker, the others do nothing.
  void leave_to_connected(const Overview& overview, std::vector<std::string>& members) const;
  void take_free(const Overview& overview);
  void hand_over_unneeded(const Overview& overview);
  /// Looks at partitions that are stopped because the broker lost messages.
  void look_for_lost(const Overview& overview);
  /// Retries partitions that an operator wants tried at once.
  void retry(const Overview& overview);
  void hand_over_surplus();
  void hand_over_drained();

  void connect();
  /// Asks whether the session is alive, if a lane doubts it.
  void probe();
  /// The broker works as it should.
  void recover();
  void drop_session(std::string why, bool misconfigured);

  /// Null if there is none yet.
  FencedLane* find_lane(PartitionId partition) noexcept;
  FencedLane& lane(PartitionId partition) {
    return lanes_.try_emplace(partition, core_, partition).first->second;
  }

  RelayOptions options_;
  AnswerSink& answers_;
  Core core_;
  std::map<PartitionId, FencedLane> lanes_;

  bool started_ = false;
  bool stopping_ = false;
  bool stopped_ = false;
  bool has_name_ = false;
  bool unfinished_ = false;
  /// Where the next round of sending begins.
  PartitionId first_lane_ = {};
  Steady next_beat_ = {};
  Steady next_look_ = {};

  // Membership: the live workers, and since when they are the same.
  std::vector<std::string> members_;
  Steady members_since_ = {};
  std::size_t active_workers_ = 0;
  std::size_t share_ = 0;
  std::size_t needed_ = 0;

  // The session with the broker.
  enum class Broker : std::uint8_t { down, connecting, connected };
  Broker broker_ = Broker::down;
  std::uint64_t last_session_ = 0;
  Steady next_connect_ = {};
  Steady connecting_since_ = {};
  /// The server has answered in this session.
  bool has_heard_ = false;
  bool was_served_ = false;
  /// When it was first served, or not served.
  Steady since_ = {};
  bool cut_off_ = false;
  /// It was cut off while connected, and no server has answered for a partition since.
  bool is_distrustful_ = false;
  /// When the answer to a probe is due; `never` if none is pending.
  Steady probe_limit_ = never;
  /// Consecutive sessions that couldn't be opened or didn't last.
  int failures_ = 0;
  /// A session that is still alive then counts as lasting.
  Steady lasts_from_ = {};
  std::string trouble_;
  bool misconfigured_ = false;
};

}  // namespace stela::relay

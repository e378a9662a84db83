// A relay worker without its driver: leases, the broker session, and the lanes of its partitions.
#pragma once

#include "relay/core.hpp"
#include "relay/fenced_lane.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stela::relay {

/// A state machine: whoever drives it hands it what the broker answers, and calls `run_due` after
/// that, when its deadline has come, and when something was committed. Everything it does, it does
/// inside these calls. They wait out all trouble but SchemaMismatch, which they throw: a newer
/// Stela migrated the database, and this worker can do nothing more in it. Threads: one at a time.
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

  /// `options` must be checked, and have a name for the worker.
  Worker(const RelayOptions& options, Fence fence, const Ports& ports);

  /// Joins the other workers and takes what is free.
  void start();
  /// Sends nothing more; once `is_stopped`, everything is handed over.
  void stop();
  bool is_stopped() const noexcept { return stopped_; }

  void on_answer(const Answer& answer);
  /// Does what is due.
  void run_due();
  /// When `run_due` has to be called again, if nothing happens before.
  Steady deadline() const;

  const Counts& counts() const noexcept { return core_.counts; }
  std::size_t active_workers() const noexcept { return active_workers_; }
  std::size_t wanted_partitions() const noexcept { return share_; }
  std::size_t owned_partitions() const noexcept;
  BrokerStatus broker_status() const;
  /// Nothing is in flight, and nothing is being asked.
  bool is_idle() const noexcept;
  bool is_connecting() const noexcept { return broker_ == Broker::connecting; }

 private:
  /// Lets the lanes send, each in its turn, for a bounded time.
  void pump();
  void beat();
  /// The server answers, and not only to say that it lives.
  bool is_served() const;
  /// Notes since when it is or isn't.
  void watch_service();
  /// It is cut off once it hasn't been served for the length of a lease, and until it has been for
  /// a while.
  void judge_broker();
  /// Asks for a partition that it doesn't own whether the server answers for any.
  void ask_for_service();
  /// Nothing is taken before it is known that the worker's name is its own.
  bool may_look() const noexcept { return has_name_ && !stopping_; }
  void look();
  void watch_membership(const Overview& overview);
  /// As long as some can reach the broker, those who can't do nothing.
  void leave_to_connected(const Overview& overview, std::vector<std::string>& members) const;
  void take_free(const Overview& overview);
  void hand_over_unneeded(const Overview& overview);
  /// Those that are stopped because the broker lost messages.
  void look_for_lost(const Overview& overview);
  /// Those of them that an operator wants to try at once.
  void retry(const Overview& overview);
  void hand_over_surplus();
  void hand_over_drained();

  void connect();
  /// Asks whether the session lives, if a lane doubts it.
  void probe();
  /// The broker does what it should.
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

  // Membership: who lives, and since when the same have.
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
  /// The server has answered something in this session.
  bool has_heard_ = false;
  bool was_served_ = false;
  /// Since when it has been served, or hasn't.
  Steady since_ = {};
  bool cut_off_ = false;
  /// It was cut off while it was connected, and since then no server answered for a partition.
  bool is_distrustful_ = false;
  /// Until when the answer to a probe has to be there; `never` if none is on its way.
  Steady probe_limit_ = never;
  /// Sessions in a row that couldn't be had, or didn't last.
  int failures_ = 0;
  /// A session that lives until then has lasted.
  Steady lasts_from_ = {};
  std::string trouble_;
  bool misconfigured_ = false;
};

}  // namespace stela::relay

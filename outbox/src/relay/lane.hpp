// One partition held by a worker.
#pragma once

#include "relay/core.hpp"

#include <stela/framework/error.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace stela::relay {

/// Keeps consistent the lease of a partition, how long it is trusted, what holds the partition
/// back, and how much of that the store knows. FencedLane defines how messages are published.
/// Threads: one at a time.
class Lane {
 public:
  Lane(Core& core, PartitionId partition) noexcept : core_{core}, partition_{partition} {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  PartitionId partition() const noexcept { return partition_; }
  bool is_owned() const noexcept { return owned_; }
  bool is_draining() const noexcept { return draining_; }
  /// We hold it to publish, and intend to keep it.
  bool is_kept() const noexcept { return owned_ && !draining_ && !looking_; }
  /// We hold the lease only to look at the broker.
  bool is_looking() const noexcept { return looking_; }
  /// Why the broker's setup can't accept this partition's messages; empty if it can.
  const std::string& misfit() const noexcept { return misfit_; }
  /// Its last request wasn't answered, whatever the server answers to others.
  bool is_unanswered() const noexcept { return is_unanswered_; }
  /// The broker answered about its stream.
  void hear() noexcept { is_unanswered_ = false; }

  /// Tries to take the lease; true if it is ours now.
  bool acquire() { return take(false); }
  /// Looks again at a partition that is stopped because the broker lost messages, unless it did so
  /// recently: the messages may be back.
  void look_for_lost();
  /// Renews the lease; on failure the lane is lost.
  void renew();
  /// Stops sending, so that the lease can be handed over.
  void drain() noexcept { draining_ = true; }
  void release();

 protected:
  ~Lane() = default;

  /// Called with the standing that the new owner found.
  virtual void begin(const Standing& standing) = 0;
  /// Discards all state in memory.
  virtual void forget() = 0;

  Lease lease() const noexcept { return {partition_, core_.worker, epoch_, run_}; }
  /// The lease is trusted, and nothing holds the lane back.
  bool may_send() const;
  /// Stops the partition until an operator adopts it.
  void stop(StopReason reason, std::string detail);
  /// Pauses sending, longer each time.
  void back_off(Trouble trouble);
  void recover();
  /// An answer is overdue.
  void on_silence(const std::string& what);
  /// The broker isn't set up for this partition: reports that, and retries at growing intervals.
  void on_misfit(const Answer& answer);
  bool is_backing_off() const { return core_.now() < held_until_; }
  void wait_no_more() noexcept { held_until_ = {}; }
  /// It has backed off since it last published something.
  bool is_in_trouble() const noexcept { return attempts_ > 0; }
  Steady held_until() const noexcept { return held_until_; }

  /// Runs a call of the store. An error holds the lane back, longer each time, and returns false.
  /// Only SchemaMismatch passes through and ends the worker: a newer Stela migrated the database.
  template <class Call>
  bool guarded(Call&& call);
  /// The same for a change under the lease. False if the lease is lost, and the lane with it.
  template <class Call>
  bool change(Call&& call, std::string_view lost = "its epoch has passed");
  bool note(const Trouble& trouble) {
    return change([&] { return core_.store.note(lease(), trouble); });
  }

  Core& core_;

 private:
  /// How often a partition that lost messages is checked again.
  static constexpr std::chrono::minutes lost_interval{1};

  bool take(bool to_look);
  std::chrono::microseconds ttl() const noexcept { return core_.options.lease_ttl; }
  void trust_from(Steady begun) noexcept { trusted_until_ = begun + ttl() - ttl() / 10; }
  /// Another owner came: our knowledge of the partition is void.
  void lose(std::string_view why);
  void let_go();
  void store_trouble(const Error& error);

  const PartitionId partition_;
  bool owned_ = false;
  bool draining_ = false;
  bool looking_ = false;
  Steady next_look_{};
  std::int64_t epoch_ = 0;
  Uuid run_ = {};
  Steady trusted_until_{};
  Steady held_until_{};
  int attempts_ = 0;
  /// Counted since the last successful change, because a full store can still be read.
  int store_failures_ = 0;
  std::string misfit_;
  bool is_unanswered_ = false;
};

template <class Call>
bool Lane::guarded(Call&& call) {
  try {
    call();
    return true;
  } catch (const SchemaMismatch&) {
    throw;
  } catch (const Error& e) {
    store_trouble(e);
    return false;
  }
}

template <class Call>
bool Lane::change(Call&& call, std::string_view lost) {
  bool is_ours = false;
  if (!guarded([&] { is_ours = call(); })) return false;
  store_failures_ = 0;
  if (!is_ours) lose(lost);
  return is_ours;
}

}  // namespace stela::relay

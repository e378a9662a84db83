// One partition in the hands of a worker.
#pragma once

#include "relay/core.hpp"

#include <stela/framework/error.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace stela::relay {

/// Keeps in step the lease of a partition, for how long it is trusted, what holds the partition
/// back, and what of that the store knows. How messages are published, FencedLane says. Threads:
/// one at a time.
class Lane {
 public:
  Lane(Core& core, PartitionId partition) noexcept : core_{core}, partition_{partition} {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  PartitionId partition() const noexcept { return partition_; }
  bool is_owned() const noexcept { return owned_; }
  bool is_draining() const noexcept { return draining_; }
  /// It is ours to publish, and stays so for now.
  bool is_kept() const noexcept { return owned_ && !draining_ && !looking_; }
  /// It has the lease only to look.
  bool is_looking() const noexcept { return looking_; }
  /// Why the broker, as it is set up, can't take what is published here; empty if it can.
  const std::string& misfit() const noexcept { return misfit_; }
  /// What was asked for it last wasn't answered, whatever the server says to others.
  bool is_unanswered() const noexcept { return is_unanswered_; }
  /// The broker said something about its stream.
  void hear() noexcept { is_unanswered_ = false; }

  /// Tries to get the lease; true if it is ours now.
  bool acquire() { return take(false); }
  /// Looks once more at a partition that is stopped because the broker lost messages, if it hasn't
  /// just done so: it may have them again.
  void look_for_lost();
  /// Without success the lane is lost.
  void renew();
  /// Sends nothing more, so that the lease can be handed over.
  void drain() noexcept { draining_ = true; }
  void release();

 protected:
  ~Lane() = default;

  /// Called with what the new owner found.
  virtual void begin(const Standing& standing) = 0;
  /// Everything in memory is worthless.
  virtual void forget() = 0;

  Lease lease() const noexcept { return {partition_, core_.worker, epoch_, run_}; }
  /// The lease is trusted and nothing holds the lane back.
  bool may_send() const;
  /// Nobody publishes this partition until an operator adopts it.
  void stop(StopReason reason, std::string detail);
  /// Waits before sending again, longer each time.
  void back_off(Trouble trouble);
  void recover();
  /// An answer didn't come in time.
  void on_silence(const std::string& what);
  /// The broker isn't set up for this partition: says so, and tries again ever more slowly.
  void on_misfit(const Answer& answer);
  bool is_backing_off() const { return core_.now() < held_until_; }
  void wait_no_more() noexcept { held_until_ = {}; }
  /// It has been backed off since it last published something.
  bool is_in_trouble() const noexcept { return attempts_ > 0; }
  Steady held_until() const noexcept { return held_until_; }

  /// Runs a call of the store; what it throws holds the lane, longer each time. False if it threw.
  /// That a newer Stela migrated the database doesn't pass: SchemaMismatch ends the worker.
  template <class Call>
  bool guarded(Call&& call);
  /// The same for a change under the lease: false if that is lost, and then the lane is, too.
  template <class Call>
  bool change(Call&& call, std::string_view lost = "its epoch has passed");
  bool note(const Trouble& trouble) {
    return change([&] { return core_.store.note(lease(), trouble); });
  }

  Core& core_;

 private:
  /// How often a partition that lost messages is looked at again.
  static constexpr std::chrono::minutes lost_interval{1};

  bool take(bool to_look);
  std::chrono::microseconds ttl() const noexcept { return core_.options.lease_ttl; }
  void trust_from(Steady begun) noexcept { trusted_until_ = begun + ttl() - ttl() / 10; }
  /// Another owner came: nothing that we know of the partition counts.
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
  /// Since the last change that succeeded: a full store can still be read.
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

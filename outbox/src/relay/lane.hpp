// One partition in the hands of a worker.
#pragma once

#include "relay/core.hpp"

#include <stela/framework/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela::relay {

/// The lease, trouble, stopping. How messages are published, FencedLane says.
/// Threads: one at a time.
class Lane {
 public:
  Lane(Core& core, PartitionId partition) noexcept : core_{core}, partition_{partition} {}
  virtual ~Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  PartitionId partition() const noexcept { return partition_; }
  bool is_owned() const noexcept { return owned_; }
  bool is_draining() const noexcept { return draining_; }
  /// Why the broker, as it is set up, can't take what is published here; empty if it can.
  const std::string& misfit() const noexcept { return misfit_; }
  /// What was asked for it last wasn't answered, whatever the server says to others.
  bool is_unanswered() const noexcept { return is_unanswered_; }
  /// The broker said something about its stream.
  void hear() noexcept { is_unanswered_ = false; }

  /// Tries to get the lease; true if it is ours now.
  bool acquire();
  /// Looks once more at a partition that is stopped because the broker lost messages, if it hasn't
  /// just done so: it may have them again.
  void look_for_lost();
  /// An operator said that it is to try at once, if it is backing off: it looks at the broker
  /// first.
  virtual void retry() = 0;
  /// It has the lease only to look.
  bool is_looking() const noexcept { return looking_; }
  /// Renews it; without success the lane is lost.
  void renew();
  /// Sends nothing more, so that the lease can be handed over.
  void drain() noexcept { draining_ = true; }
  /// Nothing is in flight, and nothing known is unmarked.
  virtual bool is_idle() const noexcept = 0;
  /// Gives the lease back.
  void release();

  /// Sends what may be sent, at most `budget` messages, which it lowers.
  void pump(int& budget);
  /// Notes what was acknowledged, unless more of the same batch is about to be.
  virtual void mark_if_due() = 0;
  /// What is due by time: timeouts, the end of a backoff.
  virtual void on_time() = 0;
  virtual Steady deadline() const = 0;

  virtual void on_answer(const Answer& answer) = 0;
  /// A new session is open: what was in flight on the old one is unknown.
  virtual void on_session() = 0;
  virtual void on_session_lost() = 0;

 protected:
  /// Called with what the new owner found.
  virtual void begin(const Standing& standing) = 0;
  /// Everything in memory is worthless.
  virtual void forget() = 0;
  /// Sends; the lease is trusted and nothing holds the lane back.
  virtual void send(int& budget) = 0;

  Lease lease() const noexcept { return {partition_, core_.worker, epoch_, run_}; }
  /// The lease lasts long enough to act under it.
  bool is_trusted() const { return owned_ && core_.now() < trusted_until_; }
  /// Another owner came: nothing that we know of the partition counts.
  void lose(std::string_view why);
  /// Nobody publishes this partition until an operator adopts it.
  void stop(StopReason reason, std::string detail);
  /// Waits before sending again, longer each time; `message` is charged if it is set.
  void back_off(std::string error, FailureClass failure, const PendingMessage* message = nullptr,
                int message_attempts = 0);
  void recover();
  /// What the broker has of what it lost: not even its end, or that, or all of it.
  enum class Look : std::uint8_t { lost, with_holes, whole };
  void end_look(Look look);
  /// An answer didn't come in time.
  void on_silence(const std::string& what);
  /// The broker isn't set up for this partition: says so, and tries again ever more slowly.
  void on_misfit(const std::string& why, FailureClass failure);
  /// Counts and reports what was noted.
  void count(const Advance& advance);
  bool is_backing_off() const { return core_.now() < held_until_; }
  void wait_no_more() noexcept { held_until_ = {}; }
  /// It has been backed off since it last published something.
  bool is_in_trouble() const noexcept { return attempts_ > 0; }
  Steady held_until() const noexcept { return held_until_; }

  /// Runs a call that writes to the store; what it throws holds the lane, longer each time. False
  /// if it threw. That a newer Stela migrated the database doesn't pass: SchemaMismatch ends the
  /// worker.
  template <class Call>
  bool guarded(Call&& call);
  /// The same for a call that only reads: its success doesn't say that the store can be written to.
  template <class Call>
  bool guarded_read(Call&& call);

  Core& core_;

 private:
  void begin_lease(const Standing& standing, Steady begun);
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
  int store_failures_ = 0;
  std::string misfit_;
  bool is_unanswered_ = false;
};

template <class Call>
bool Lane::guarded(Call&& call) {
  if (!guarded_read(call)) return false;
  store_failures_ = 0;
  return true;
}

template <class Call>
bool Lane::guarded_read(Call&& call) {
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

}  // namespace stela::relay

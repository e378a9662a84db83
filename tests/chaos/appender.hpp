// A process that appends, and may kill itself between a commit and its answer.
#pragma once

#include "chaos/jumping_clock.hpp"
#include "chaos/ledger.hpp"
#include "chaos/roles.hpp"
#include "support/fault_vfs.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <stop_token>

namespace stela::chaos {

/// Kills the process behind the n-th call that writes to the database's log or syncs it.
class DieBehindNth final : public test::FileWatcher {
 public:
  explicit DieBehindNth(int nth) : left_{nth} {}
  void after(const test::FileCall& call, int code) noexcept override;

 private:
  std::atomic<int> left_;
};

/// Threads: one.
class Appender {
 public:
  Appender(const Settings& settings, const Part& part);

  /// Appends until it is told to stop. What a process before this one left unanswered is tried
  /// again, or left as it is.
  void run(const std::stop_token& stop);
  /// So many times, each until it is stored.
  void append(int times);

 private:
  ShopOptions store_options() const;
  Attempt begin_next();
  /// Until it is stored, or given up.
  /// `may_stand`: an earlier process may have stored it.
  void settle(Attempt attempt, const std::stop_token& stop, bool may_stand = false);
  void try_once(Attempt& attempt);
  bool once_in(unsigned times) { return random_() % times == 0; }

  const Part part_;
  const int large_size_;
  /// In microseconds.
  /// In microseconds.
  const std::uint64_t longest_pause_;
  const JumpingClock clock_;
  DieBehindNth death_in_log_;
  std::unique_ptr<test::FaultVfs> vfs_;
  Store store_;
  const Outbox outbox_;
  const std::vector<Attempt> before_;
  Ledger ledger_;
  std::mt19937_64 random_;
  std::int64_t serial_;
  int answers_left_;
};

}  // namespace stela::chaos

// Group commit: one caller commits for all callers that are waiting.
#pragma once

#include "database/occupation.hpp"

#include <stela/eventstore/export.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace stela {

/// A queue of work that must run one group at a time. It has no thread of its own: the first caller
/// in line leads, and carries out its own work together with the work queued after it. A group may
/// have a second phase, its completion, which needn't be exclusive: the line moves on before it. No
/// caller of the group returns before its completion has ended. A caller waits as long as the line
/// moves. The line can only stall while a caller's own code runs, which may even wait for another
/// caller in line: that wait has a limit.
/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT CommitQueue {
 public:
  struct Ticket;

  /// Other callers' work, for which one caller waits in line. The work is chosen only when the
  /// ticket's turn comes, so callers in line wait for nothing but callers' threads.
  class Source {
   public:
    /// The next piece of work, which must live until the caller has returned. Null if none fits
    /// into `bytes`. Called under the queue's mutex.
    virtual Ticket* take(std::size_t bytes) noexcept = 0;

   protected:
    ~Source() = default;
  };

  /// One caller's work. Lives on the caller's stack.
  struct Ticket {
    /// The work must run alone, on the caller's own thread.
    bool exclusive = false;
    /// A group is complete once its work has this size.
    std::size_t bytes = 0;
    /// If set, its work is carried out in place of this ticket's: as much as fits into a group, or
    /// one piece if the ticket is exclusive.
    Source* source = nullptr;

   private:
    friend class CommitQueue;
    enum State : std::uint32_t { waiting, leading, done };
    std::atomic<std::uint32_t> state{waiting};
  };

  static constexpr std::size_t max_group_size = 256;
  static constexpr std::size_t max_group_bytes = std::size_t{4} * 1024 * 1024;
  /// How many groups one caller carries out. The others wait for it, and it for them.
  static constexpr int max_groups = 2;
  /// For work that must not fail.
  static constexpr std::chrono::milliseconds most_patience = std::chrono::hours{24 * 365};

  /// What `execute` leaves to do for a group.
  enum class Left : std::uint8_t { nothing, completion };

  /// One caller carries out several groups if the line would otherwise idle while the next leader
  /// wakes up.
  explicit CommitQueue(int groups_of_a_leader = max_groups) noexcept
      : groups_of_a_leader_{groups_of_a_leader} {}

  /// Returns when `ticket` has been carried out, by this thread or another. If this thread leads,
  /// `execute` is called with a group that begins with this ticket (or its source's work), and then
  /// with groups of other callers. So it must be able to carry out anybody's work, and it must not
  /// throw. Don't call `submit` from within `execute`: see `is_leading`.
  ///
  /// StoreBusy, naming the projector or thread that holds the line, if a caller's own code has held
  /// it for `patience` and this ticket has waited as long; the ticket wasn't carried out then.
  template <class Execute>
  void submit(Ticket& ticket, Execute&& execute,
              std::chrono::milliseconds patience = most_patience) {
    const auto execute_all = [&](std::span<Ticket* const> members) {
      execute(members);
      return Left::nothing;
    };
    submit_phases(
        ticket, execute_all, [](std::span<Ticket* const>) {}, patience);
  }

  /// The same for work whose groups may have a second phase. If `execute` leaves a completion,
  /// `complete` is called with the group once the next leader has its turn. It must not throw.
  template <class Execute, class Complete>
  void submit_phases(Ticket& ticket, Execute&& execute, Complete&& complete,
                     std::chrono::milliseconds patience = most_patience) {
    if (wait_for_turn(ticket, patience)) return;
    leader_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    Group group;
    bool goes_on = true;
    for (int groups = 1; goes_on; ++groups) {
      gather(group);
      // A source may have run out of work before its turn.
      const bool is_complete = group.size == 0 || execute(group.members()) == Left::nothing;
      goes_on = move_on(group, is_complete && groups < groups_of_a_leader_);
      if (!is_complete) complete(group.members());
      wake_members(ticket, group);
    }
  }

  /// The number of tickets in line, including those being carried out.
  std::size_t size() {
    const std::lock_guard lock{mutex_};
    return queue_.size() - begin_;
  }

  /// Exists while a caller's own code, which may stall, runs within `execute`. One at a time.
  class STELA_EVENTSTORE_EXPORT Hold {
   public:
    explicit Hold(CommitQueue& queue) noexcept;
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    CommitQueue& queue_;
  };

  /// True on the thread that is carrying out a group.
  bool is_leading() const noexcept {
    return leader_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  /// On the leader's stack, so that it needs no memory: no step between taking a turn and passing
  /// it on may fail, or everybody would wait for ever.
  struct Group {
    /// The work.
    std::array<Ticket*, max_group_size> tickets;
    std::size_t size = 0;
    std::size_t bytes = 0;
    /// The callers in line for it.
    std::array<Ticket*, max_group_size> callers;
    std::size_t caller_count = 0;

    std::span<Ticket* const> members() const noexcept { return {tickets.data(), size}; }
    bool has_room(const Ticket& ticket) const noexcept;
    void add(Ticket& ticket) noexcept;
    void add_work(Ticket& work) noexcept;
  };

  using Time = std::chrono::steady_clock::time_point;

  /// True if another thread carried it out; false if this thread must lead. Throws bad_alloc before
  /// the ticket is in line.
  bool wait_for_turn(Ticket& ticket, std::chrono::milliseconds patience);
  /// When patience with a line that stalls since it was held will end. If that is now, leaves the
  /// line and throws StoreBusy.
  Time check_patience(const Ticket& ticket, std::chrono::milliseconds patience);
  /// Collects the group of the ticket at the front.
  void gather(Group& group) noexcept;
  /// Takes the group out of the line. True if the leader must carry out the next one too; otherwise
  /// it stops leading, and the next caller leads.
  bool move_on(const Group& group, bool may_go_on) noexcept;
  static void wake_members(const Ticket& own, const Group& group) noexcept;

  const int groups_of_a_leader_;
  std::mutex mutex_;
  /// Guarded by mutex_. The front is at begin_, so that popping needs no move.
  std::vector<Ticket*> queue_;
  std::size_t begin_ = 0;
  /// How many at the front are being carried out, or come next, and so can't leave the line.
  std::size_t taken_ = 0;
  /// Since when a caller's own code has held the line, its thread's system id, and its occupation.
  std::optional<Time> held_since_;
  int holder_ = 0;
  database::Occupation::Slot* occupation_ = nullptr;
  std::atomic<std::thread::id> leader_{};
};

}  // namespace stela

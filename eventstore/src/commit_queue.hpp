// Group commit: whoever finds nobody committing commits for all who wait.
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

/// A queue of work that must run one group at a time. No thread of its own: the first in line
/// leads, and carries out what has gathered behind it together with its own.
/// A group may have a second phase, its completion, which needn't be alone: the line moves on
/// before it. Nobody in the group returns before its completion has ended.
/// Whoever is in line waits as long as it moves. It can only stand still while a caller's own code
/// runs, which may even wait for somebody in line: that has a limit.
/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT CommitQueue {
 public:
  struct Ticket;

  /// Work of others that a caller stands in line for. Only when it is the ticket's turn is it known
  /// what that is, so nobody in line waits for anything but callers' threads.
  class Source {
   public:
    /// The next piece of work, which must live until the caller has returned. Null if there is none
    /// that fits into so many bytes. Called under the queue's mutex.
    virtual Ticket* take(std::size_t bytes) noexcept = 0;

   protected:
    ~Source() = default;
  };

  /// One caller's work. Lives on the caller's stack.
  struct Ticket {
    /// Must run alone, on the caller's own thread.
    bool exclusive = false;
    /// A group ends when it has gathered this much.
    std::size_t bytes = 0;
    /// If set, its work is carried out instead of this ticket's: as much as fits into a group; one
    /// piece if the ticket is exclusive.
    Source* source = nullptr;

   private:
    friend class CommitQueue;
    enum State : std::uint32_t { waiting, leading, done };
    std::atomic<std::uint32_t> state{waiting};
  };

  static constexpr std::size_t max_group_size = 256;
  static constexpr std::size_t max_group_bytes = std::size_t{4} * 1024 * 1024;
  /// How many groups a caller carries out: the others wait for it, and it for them.
  static constexpr int max_groups = 2;
  /// For what must not fail.
  static constexpr std::chrono::milliseconds most_patience = std::chrono::hours{24 * 365};

  /// What `execute` leaves to be done for a group.
  enum class Left : std::uint8_t { nothing, completion };

  /// A caller carries out several groups where nothing would be done while the next leader wakes
  /// up.
  explicit CommitQueue(int groups_of_a_leader = max_groups) noexcept
      : groups_of_a_leader_{groups_of_a_leader} {}

  /// Returns when `ticket` has been carried out, by this thread or another. `execute` is called
  /// with a group that begins with this ticket (or the work of its source), if this thread is the
  /// one to lead, and then with groups of others': it can carry out anybody's work, and doesn't
  /// throw. Called from within `execute`, it is the caller's bug: see `is_leading`.
  ///
  /// StoreBusy, which names the projector or the thread that holds the line, if a caller's own code
  /// has held it for `patience` and this ticket has waited as long; it was not carried out then.
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

  /// The same of work whose groups may have a second phase. If `execute` leaves a completion,
  /// `complete` is called with the group, once the next leader has its turn; it doesn't throw,
  /// either.
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

  /// How many are in line, with those whose work is being carried out.
  std::size_t size() {
    const std::lock_guard lock{mutex_};
    return queue_.size() - begin_;
  }

  /// Lives while a caller's own code runs, within `execute`: that may stand still. One at a time.
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
  /// On the leader's stack: nothing between taking a turn and passing it on may fail, or everybody
  /// would wait for ever, so it needs no memory of its own.
  struct Group {
    /// The work.
    std::array<Ticket*, max_group_size> tickets;
    std::size_t size = 0;
    std::size_t bytes = 0;
    /// Those who stand in line for it.
    std::array<Ticket*, max_group_size> callers;
    std::size_t caller_count = 0;

    std::span<Ticket* const> members() const noexcept { return {tickets.data(), size}; }
    bool has_room(const Ticket& ticket) const noexcept;
    void add(Ticket& ticket) noexcept;
    void add_work(Ticket& work) noexcept;
  };

  using Time = std::chrono::steady_clock::time_point;

  /// True if another thread carried it out; false if this thread is to lead. Throws bad_alloc
  /// before the ticket is in line.
  bool wait_for_turn(Ticket& ticket, std::chrono::milliseconds patience);
  /// When to lose patience with a line that has stood still since it was held. Out of the line and
  /// StoreBusy if that is now.
  Time check_patience(const Ticket& ticket, std::chrono::milliseconds patience);
  /// The group of the ticket at the front.
  void gather(Group& group) noexcept;
  /// The group is out of the line. True if the leader is to carry out the next one as well;
  /// otherwise it leads no more, and whoever is next does.
  bool move_on(const Group& group, bool may_go_on) noexcept;
  static void wake_members(const Ticket& own, const Group& group) noexcept;

  const int groups_of_a_leader_;
  std::mutex mutex_;
  /// Guarded by mutex_, as a ring would be: the front is at begin_.
  std::vector<Ticket*> queue_;
  std::size_t begin_ = 0;
  /// So many at the front are being carried out, or will be next, and can't leave the line.
  std::size_t taken_ = 0;
  /// Since when a caller's own code holds the line, the system's number of its thread, and what
  /// that is busy with.
  std::optional<Time> held_since_;
  int holder_ = 0;
  database::Occupation::Slot* occupation_ = nullptr;
  std::atomic<std::thread::id> leader_{};
};

}  // namespace stela

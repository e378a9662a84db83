// What really happened, and the invariants that it must keep.
#pragma once

#include "simulation/jetstream_model.hpp"

#include <stela/outbox/partitioner.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stela::sim {

/// An invariant that doesn't hold, by its number in docs/relay.md.
struct Violation {
  int invariant = 0;
  std::string what;
};

/// Watches everything that is committed and everything that the broker stores, from outside, and
/// throws a Violation at the first thing that must not be.
class Truth {
 public:
  explicit Truth(Fence fence) : fence_{fence} {}
  /// Whose events the broker may hold.
  void know_store(std::string id) { store_id_ = std::move(id); }

  struct Event {
    std::int64_t stream = 0;
    bool publishes = false;
    std::string id;
    int generation = 0;
    PartitionId partition = {};
    /// How many times it stands at the broker, redeliveries apart.
    int copies = 0;
    int redeliveries = 0;
    /// How often an operator had it sent though it was published.
    int republished = 0;
    bool parked = false;
    bool discarded = false;
    /// The store says that it is published.
    bool marked = false;
    /// An operator sent it again, so it comes out of order.
    bool sent_again = false;
    /// The broker lost it after it had acknowledged it.
    bool lost = false;
    /// It is to be sent again because of that.
    bool awaited = false;

    /// Copies that no operator asked for: the first, and whatever shouldn't be.
    int unasked() const noexcept { return copies + redeliveries - republished; }
  };

  // What the store did.
  void on_generation(int number, int partition_count);
  void on_append(std::int64_t sequence, std::int64_t stream, bool publishes, std::string id,
                 PartitionId partition);
  void on_acquire(PartitionId partition, std::string_view owner, std::int64_t epoch);
  void on_change(PartitionId partition, std::string_view by, std::int64_t epoch,
                 std::string_view owner, std::int64_t current_epoch);
  void on_published(std::int64_t sequence, std::int64_t redelivery);
  void on_parked(std::int64_t sequence);
  void on_discarded(std::int64_t sequence);
  /// `redelivery` names the operator's wish.
  void on_sent_again(std::int64_t sequence, std::int64_t redelivery, int generation);
  void on_republished(std::int64_t sequence, std::int64_t redelivery, int generation);
  void on_republish_given_up(std::int64_t sequence);

  /// Invariant 1, after each transaction: so many wait, be it behind what is parked.
  void check_pending(std::int64_t pending) const;

  // What the broker did.
  void on_stored(PartitionId partition, const Stored& stored);
  /// It lost a message, though it had taken it.
  void on_lost(const Sent& message);
  /// The store is an older copy of itself from now on. Nothing may be sent to these partitions.
  void on_store_went_back(std::set<PartitionId> closed);

  /// Counted for a fence of none: how many second copies faults may account for.
  void allow_duplicates(std::int64_t count) noexcept { allowed_duplicates_ += count; }

  /// Everything that is to be published stands at the broker, but for what is parked or discarded.
  std::int64_t missing() const noexcept { return missing_; }
  std::string first_missing() const;
  /// The same of one partition, and what was stored of it so far.
  std::int64_t missing_of(PartitionId partition) const;
  std::int64_t stored_of(PartitionId partition) const;

  /// Events that are to be published and are neither marked nor given up.
  std::int64_t open() const noexcept { return open_; }

  std::int64_t appended() const noexcept { return static_cast<std::int64_t>(events_.size()); }
  std::int64_t stored() const noexcept { return stored_; }
  std::int64_t duplicates() const noexcept { return duplicates_; }
  std::int64_t changes_of_owner() const noexcept { return changes_of_owner_; }
  const Event& event(std::int64_t sequence) const { return events_.at(index(sequence)); }

 private:
  struct Partition {
    /// The sequences that belong to it, in order, and how many of them are through.
    std::vector<std::int64_t> expected;
    std::size_t next = 0;
    std::int64_t last_stored = 0;
    std::int64_t missing = 0;
    std::int64_t stored = 0;
    std::string owner;
    std::int64_t epoch = 0;
  };

  [[noreturn]] static void fail(int invariant, const std::string& what) {
    throw Violation{invariant, what};
  }
  static std::size_t index(std::int64_t sequence) { return static_cast<std::size_t>(sequence - 1); }
  void await(const Event& event);
  void settle(const Event& event);
  void on_redelivered(Event& event, const Sent& message);
  void count_copy(const std::string& what, int copies);
  void check_order(Partition& partition, std::int64_t sequence);
  void check_stream(const Event& event, std::int64_t sequence);
  void check_generation(const Event& event, std::int64_t sequence);

  Fence fence_;
  std::string store_id_;
  std::vector<Event> events_;
  /// What operators wished for: which event, and how often it stands at the broker for this.
  struct Wish {
    std::int64_t sequence = 0;
    int copies = 0;
  };
  std::unordered_map<std::int64_t, Wish> wishes_;
  std::map<PartitionId, Partition> partitions_;
  /// Of each generation: how many of its events are neither at the broker nor set aside.
  std::map<int, std::int64_t> waiting_;
  int generation_ = 0;
  std::unordered_map<std::int64_t, std::set<std::int64_t>> parked_by_stream_;
  std::unordered_map<std::int64_t, std::int64_t> last_of_stream_;
  std::int64_t missing_ = 0;
  std::int64_t stored_ = 0;
  std::int64_t duplicates_ = 0;
  std::int64_t allowed_duplicates_ = 0;
  std::int64_t changes_of_owner_ = 0;
  std::int64_t open_ = 0;
  bool store_went_back_ = false;
  std::set<PartitionId> closed_;
};

}  // namespace stela::sim

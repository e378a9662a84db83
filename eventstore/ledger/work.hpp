// A caller's work in the writers' queue.
#pragma once

#include "commit_queue.hpp"
#include "database/database.hpp"
#include "database/event_page.hpp"

#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/event_store.hpp>
#include <stela/framework/transaction_outcome.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stela::ledger {

/// One append, or one piece of the caller's own work. Each engine adds its own fields.
struct Work : CommitQueue::Ticket {
  /// The work: one of these, or one of the engine's fields.
  const AppendRequest* request = nullptr;
  const FunctionRef<void(Transaction&)>* user = nullptr;

  database::Sync sync = database::Sync::as_stored;
  /// Whether the caller wants `events`.
  bool wants_events = false;
  /// The stored form of the request's context, encoded before the lock is taken.
  std::string metadata = {};

  AppendResult result = {};
  std::exception_ptr error = {};
  /// The outcomes of its transaction and the savepoints in it.
  OpenOutcomes outcomes = {};
  /// The appended events. They point into the request, or into copies.
  std::vector<StoredEvent> events = {};
  /// Snapshots to write after the transaction. One without a value is dropped.
  std::vector<std::pair<StreamId, std::optional<StoredSnapshot>>> snapshots = {};

  /// Adds a copy of the event to `events`.
  void keep(const StoredEvent& event);

  /// The position of a part of the work.
  struct Extent {
    std::size_t depth = 0;
    std::size_t events = 0;
    std::size_t snapshots = 0;
  };
  Extent extent() const noexcept { return {outcomes.depth(), events.size(), snapshots.size()}; }
  /// Drops the events and snapshots of the part that began there.
  void shrink_to(const Extent& extent) noexcept;

 private:
  std::vector<std::unique_ptr<EventPage>> pages_;
  std::vector<std::unique_ptr<const StreamId>> streams_;
};

/// Makes the work an append. UsageError if the request can't be stored.
void fill(Work& work, const AppendRequest& request, const Conventions& conventions);

/// Carries out the snapshots of a transaction that has ended. Logs failures.
void write_snapshots(EventStore& store, const Work& work);

}  // namespace stela::ledger

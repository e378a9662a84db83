// Imports events that only the broker has: those that fit are appended, and count as published
// where they are.
#pragma once

#include "database/event_import.hpp"
#include "tables/known_messages.hpp"
#include "tables/upkeep.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/outbox/detail/broker_contents.hpp>
#include <stela/outbox/operations.hpp>

#include <map>
#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stela::outbox {

/// Threads: one at a time.
class Import {
 public:
  Import(Store& store, const OnProgress& progress);

  ImportPlan plan(BrokerArchive& broker);
  AppliedImport apply(const ImportPlan& plan, BrokerArchive& broker, StoredOperations& operations,
                      std::string_view who, const std::stop_token& stop);

 private:
  using Places = std::vector<std::uint64_t>;
  struct Incoming {
    const StrayEvent* planned = nullptr;
    /// When the broker stored it.
    Timestamp stored_at = {};
    ParsedEvent event;
  };
  struct Stored {
    const StrayEvent* planned = nullptr;
    Timestamp stored_at = {};
    std::int64_t sequence = 0;
  };
  struct Misfit {
    const StrayEvent* planned = nullptr;
    std::string why = {};
  };
  using Names = std::set<std::string, std::less<>>;
  /// The results of one transaction.
  struct Step {
    Names changed_streams = {};
    std::int64_t last = 0;
    std::vector<Stored> stored = {};
    std::vector<Misfit> misfits = {};
  };

  Places find_strays(BrokerArchive& broker, PartitionId partition, ImportPlan& plan);
  void take(PartitionId partition, const BrokerEvent& found, ImportPlan& plan) const;
  void judge(ImportPlan& plan) const;
  std::vector<Incoming> fetch(std::span<const StrayEvent* const> planned, BrokerArchive& broker,
                              std::vector<Misfit>& misfits) const;
  std::int64_t append(std::span<const Incoming> incoming, StoredOperations& operations,
                      std::string_view who, std::vector<Misfit>& misfits);
  std::span<const Incoming> append_some(database::Connection& connection,
                                        std::span<const Incoming> incoming, Step& step) const;
  std::string record(database::Connection& connection, std::span<const Stored> stored) const;
  void report(std::string_view stage, std::int64_t done, std::int64_t total) const;

  Store& store_;
  const OnProgress& progress_;
  const std::string store_id_;
  /// The partitions with their own streams at the broker; without a fence, the shared one.
  std::vector<PartitionId> partitions_;
  bool is_shared_ = false;
  KnownMessages known_;
  std::unique_ptr<EventImport> rows_;
  /// Streams in which a planned event no longer fits, so no later one does.
  Names changed_streams_;
  Names imported_streams_;
};

}  // namespace stela::outbox

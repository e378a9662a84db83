// A database, with appends, relays and an operator on it, and a look at what
// stands at the broker.
#pragma once

#include "chaos/members.hpp"
#include "chaos/settings.hpp"
#include "chaos/world.hpp"
#include "nats/jetstream.hpp"

#include <stela/outbox/operations.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace stela::chaos {

/// The messages of each place that a partition publishes to, in their order.
using Contents = std::map<std::string, std::vector<test::RawMessage>>;

class Scene {
 public:
  /// The database of these settings, which must be there.
  Scene(World& world, const Settings& settings);

  /// Appends so many times, under ids that stand in a ledger of the scene's.
  void append(int times);
  void start_relays() { relays_.add("relay", 2); }
  void stop_relays() { relays_.stop("relay", world_.problems); }

  OutboxStatus status() const;
  std::vector<PartitionStatus> stopped() const;
  /// As an operator does it, who takes the broker as it is.
  void adopt(const std::vector<PartitionStatus>& partitions);
  /// Looks at the broker for what counts as published, and sends again what
  /// isn't there.
  Compared compare(Mode mode);
  /// Whether each event stands at the broker; with the fence `stream`, once.
  void require_all(const std::string& whose);
  /// Messages that wait to be published.
  std::int64_t waiting() const;
  /// Waits until nothing waits to be published; false, with a problem, if what waits doesn't get
  /// less for too long.
  bool drains(const std::string& problem);
  bool ends(const std::string& problem, const std::function<std::int64_t()>& left);
  /// Waits for it; with a problem if it doesn't come about.
  bool expect(const std::string& problem, const std::function<bool()>& condition);

  /// Of the events that are to be published.
  std::set<std::string> ids() const;
  Contents contents() const;
  /// Where the partition publishes to.
  std::string place_of(PartitionId partition) const;

 private:
  World& world_;
  const Settings settings_;
  Members relays_;
};

/// True if what `then` has begins with what was there `before`.
bool goes_on_from(const Contents& before, const Contents& then);
/// How often each event stands there, by its id.
std::map<std::string, int> copies_in(const Contents& contents);

}  // namespace stela::chaos

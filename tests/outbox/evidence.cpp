#include "outbox/evidence.hpp"

#include <map>
#include <set>
#include <utility>

namespace stela::test {
namespace {

/// One message at the broker, as text.
struct Row {
  int partition = 0;
  std::int64_t event = 0;
  std::int64_t redelivery = 0;
  std::string id;
  std::string payload;
};

std::vector<Row> rows_of(FileBroker& broker) {
  const std::string order = " FROM stored ORDER BY partition, sequence";
  const auto column = [&](const char* name) {
    return broker.database().rows("SELECT " + std::string{name} + order);
  };
  const auto partitions = column("partition");
  const auto events = column("event");
  const auto redeliveries = column("redelivery");
  const auto ids = column("id");
  const auto payloads = column("payload");
  std::vector<Row> rows;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    rows.push_back({std::stoi(partitions[i]), std::stoll(events[i]), std::stoll(redeliveries[i]),
                    ids[i], payloads[i]});
  }
  return rows;
}

/// Looks at the broker's rows, one after the other.
class Comparison {
 public:
  Comparison(Store& store, Fence fence) : fence_{fence} {
    for (const StoredEvent& event : store.read_all()) {
      if (!event.publishes()) continue;
      wanted_.emplace(event.sequence.value(),
                      std::pair{event.id.to_string(), std::string{event.payload}});
      streams_.emplace(event.sequence.value(), event.stream.name());
    }
  }

  void look_at(const Row& row) {
    const auto event = wanted_.find(row.event);
    const std::string name = "event " + std::to_string(row.event);
    if (event == wanted_.end()) return flaw(name + " is at the broker, and not in the store");
    if (row.id.substr(0, 36) != event->second.first) flaw(name + " has another id");
    if (row.payload != event->second.second) flaw(name + " has other bytes");
    const bool is_new = seen_.insert(row.event).second;
    if (row.redelivery > 0) return;
    if (!is_new) {
      ++evidence.duplicates;
      if (fence_ != Fence::none) flaw(name + " stands twice");
      return;
    }
    std::int64_t& last = fence_ == Fence::none ? last_of_stream_[streams_.at(row.event)]
                                               : last_of_partition_[row.partition];
    if (row.event < last) flaw(name + " comes after event " + std::to_string(last));
    last = row.event;
  }

  void finish() {
    evidence.events = static_cast<std::int64_t>(wanted_.size());
    for (const auto& [sequence, event] : wanted_) {
      if (!seen_.contains(sequence)) flaw("event " + std::to_string(sequence) + " is lost");
    }
  }

  void flaw(std::string what) {
    if (evidence.flaws.size() < 10) evidence.flaws.push_back(std::move(what));
  }

  Evidence evidence;

 private:
  const Fence fence_;
  std::map<std::int64_t, std::pair<std::string, std::string>> wanted_;
  std::map<std::int64_t, std::string> streams_;
  std::set<std::int64_t> seen_;
  std::map<int, std::int64_t> last_of_partition_;
  std::map<std::string, std::int64_t> last_of_stream_;
};

}  // namespace

Evidence compare(Store& store, FileBroker& broker, Fence fence) {
  Comparison comparison{store, fence};
  for (const Row& row : rows_of(broker)) comparison.look_at(row);
  comparison.finish();
  const auto check = outbox_check();
  IntegrityCheck* const checks[] = {check.get()};
  StoreOperations{store}.verify(
      [&](const Problem& problem) { comparison.flaw(to_string(problem)); }, {.checks = checks});
  const OutboxStatus status = OutboxOperations{store}.status();
  const std::int64_t waiting = status.pending + status.redeliveries + status.parked;
  if (waiting != 0) comparison.flaw(std::to_string(waiting) + " messages still wait");
  return comparison.evidence;
}

}  // namespace stela::test

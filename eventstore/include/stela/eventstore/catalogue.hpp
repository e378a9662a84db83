// What StoreOperations reports about the contents of a database: streams, event kinds, snapshots.
#pragma once

#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

namespace stela {

struct StreamEntry {
  StreamId stream;
  StreamVersion version;
  /// Its last event.
  GlobalSequence last;
  Timestamp changed_at;
};

/// Selects streams. They are listed in the order of their names.
struct StreamListing {
  /// Empty: all.
  std::string category = {};
  /// Only streams after this name.
  std::string after = {};
  std::int64_t limit = no_limit;
};

struct SnapshotEntry {
  StreamId stream;
  StreamVersion version;
  GlobalSequence sequence;
  int state_version = 1;
  Timestamp taken_at;
  std::int64_t bytes = 0;
};

/// Totals of the events of one kind.
struct KindCount {
  std::string category;
  std::string type;
  int version = 1;
  bool publishes = false;
  std::int64_t events = 0;
  std::int64_t payload_bytes = 0;
  GlobalSequence first;
  GlobalSequence last;
};

struct CountOptions {
  /// The first event that is counted.
  GlobalSequence from = GlobalSequence{1};
  /// Kinds of which no event is counted as well.
  bool lists_all = false;
  /// Counts events. Called between steps. An exception from it ends the count.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct RequiredParticipant {
  std::string name;
  std::string detail;
  Timestamp registered_at;
};

}  // namespace stela

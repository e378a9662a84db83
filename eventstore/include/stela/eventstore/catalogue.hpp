// What a database holds, for those who look at it from outside: streams, kinds, snapshots.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace stela {

struct StreamEntry {
  StreamId stream;
  StreamVersion version;
  /// Its last event.
  GlobalSequence last;
  Timestamp changed_at;
};

/// Which streams, in the order of their names.
struct StreamListing {
  /// Empty: all.
  std::string category = {};
  /// Only streams behind this name.
  std::string after = {};
  std::int64_t limit = no_limit;
};

/// Threads: any number at once, as for everything here.
STELA_EVENTSTORE_EXPORT std::vector<StreamEntry> list_streams(Store& store,
                                                              const StreamListing& which = {});

struct SnapshotEntry {
  StreamId stream;
  StreamVersion version;
  GlobalSequence sequence;
  int state_version = 1;
  Timestamp taken_at;
  std::int64_t bytes = 0;
};

STELA_EVENTSTORE_EXPORT std::vector<SnapshotEntry> list_snapshots(Store& store,
                                                                  const StreamListing& which = {});

/// What the events of one kind come to.
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
  /// In events. Called between steps; what it throws ends the count.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

/// Counts every event, in steps that hold no transaction for long. Empty if it was stopped.
STELA_EVENTSTORE_EXPORT std::vector<KindCount> count_events(Store& store,
                                                            const CountOptions& options = {});

/// Looks through all events, the newest first.
STELA_EVENTSTORE_EXPORT std::optional<GlobalSequence> find_event(Store& store, const EventId& id);

/// The events that name `cause` as their cause, all of them behind `after`; at most `limit`.
STELA_EVENTSTORE_EXPORT std::vector<GlobalSequence> effects_of(Store& store, const EventId& cause,
                                                               GlobalSequence after,
                                                               std::int64_t limit);

struct RequiredParticipant {
  std::string name;
  std::string detail;
  Timestamp registered_at;
};

/// Who must take part in every append.
STELA_EVENTSTORE_EXPORT std::vector<RequiredParticipant> required_participants(Store& store);

}  // namespace stela

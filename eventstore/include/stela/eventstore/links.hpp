// Causes, effects and correlations: options and results of what StoreOperations looks up by them.
#pragma once

#include <stela/eventstore/progress.hpp>
#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace stela {

/// So many events that aren't in the index of links are read by one look-up.
inline constexpr std::int64_t most_unindexed = 1'000'000;

/// Selects the events of a correlation, or the direct effects of an event.
struct LinkQuery {
  /// The event that began the correlation is one of its events. Empty: look for effects.
  std::string correlation = {};
  /// Events that name this one as their cause.
  EventId cause = {};
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  /// In the order of their sequence, the oldest or the newest first.
  Direction direction = Direction::forward;
  std::int64_t limit = 100;
};

struct LinkedEvents {
  std::vector<GlobalSequence> sequences = {};
  /// How many events weren't looked at, because they are neither indexed nor among the
  /// `most_unindexed` that were read. `index_links` makes it 0.
  std::int64_t skipped = 0;
};

/// An event that another led to, directly or by events between them.
struct Effect {
  GlobalSequence sequence;
  EventId id;
  EventId cause;
};

struct Effects {
  /// By their sequence.
  std::vector<Effect> effects = {};
  /// There are more than the limit.
  bool has_more = false;
  /// As in LinkedEvents.
  std::int64_t skipped = 0;
};

struct IndexLinksOptions {
  /// Removes the index first, and builds it from the first event on.
  bool again = false;
  /// Called between steps. An exception from it ends the indexing.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct IndexedLinks {
  /// How many events were indexed by this call.
  std::int64_t events = 0;
  /// All events up to this one are indexed.
  GlobalSequence through = {};
  /// False if it was stopped. Call it again to continue.
  bool finished = true;
};

}  // namespace stela

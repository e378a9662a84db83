// What operators do with projectors, without having their code: for tools.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/projections/export.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stela::projections {

/// One build of a projector, or a reaction, as it stands.
struct ProjectorStatus {
  std::string name = {};
  /// Which set of tables: they are called "<name>@<build>.<table>".
  std::int64_t build = 0;
  int version = 1;
  /// "async", "inline" or "reaction".
  std::string kind = {};
  /// "building", "living", "retired" until its tables are dropped, or "scratch": of a replay.
  std::string state = {};
  /// Everything up to this sequence is in its tables.
  GlobalSequence position = {};
  /// How many events it is behind the store, and for how long the first of them has waited.
  std::int64_t lag_events = 0;
  std::chrono::microseconds lag{0};
  /// Who drives it; empty if nobody does.
  std::string owner = {};
  Timestamp lease_until = {};
  /// The event that couldn't be handled, 0 if there is none; and what was said.
  GlobalSequence failing = {};
  std::string error = {};
  int attempts = 0;
  Timestamp next_attempt_at = {};
  bool halted = false;
  std::int64_t parked = 0;
  std::int64_t skipped = 0;
};

/// Everything that the database knows of, by name and build. Empty if it has no projections.
STELA_PROJECTIONS_EXPORT std::vector<ProjectorStatus> list(Store& store);

/// An event that a projector couldn't take, and was put aside.
struct ParkedEvent {
  GlobalSequence sequence = {};
  /// "parked", "retry" until a runner has tried it again, or "skipped".
  std::string state = {};
  Timestamp parked_at = {};
  int attempts = 0;
  std::string error = {};
};

/// What the living build of a projector parked and skipped, in order.
STELA_PROJECTIONS_EXPORT std::vector<ParkedEvent> parked(Store& store, std::string_view projector);

/// All of these throw UsageError if there is no such projector, or nothing to do it with. Runners
/// notice at once, in whichever process they are.

/// The halted or failing event is tried again at once, as if for the first time; in a rebuild that
/// stopped as well.
STELA_PROJECTIONS_EXPORT void retry(Store& store, std::string_view projector);
/// A parked event is tried again, by itself.
STELA_PROJECTIONS_EXPORT void retry_parked(Store& store, std::string_view projector,
                                           GlobalSequence sequence);
/// Goes on behind the event that fails, also in a rebuild that stopped, or gives a parked one up;
/// that it was skipped is recorded.
STELA_PROJECTIONS_EXPORT void skip(Store& store, std::string_view projector,
                                   GlobalSequence sequence);

/// The rebuild that is under way, or stopped, is given up: its tables are dropped.
STELA_PROJECTIONS_EXPORT void cancel_rebuild(Store& store, std::string_view projector);

/// The scratch tables of a replay are dropped; of one that is under way, it stops.
STELA_PROJECTIONS_EXPORT void drop_replay(Store& store, std::string_view projector);

/// Appends no longer require the inline projector: for a process that can't have it. Its model
/// falls behind; the next process that registers it catches it up first.
STELA_PROJECTIONS_EXPORT void leave_behind(Store& store, std::string_view projector);

/// The database forgets the projector or reaction, with all of its tables and views.
STELA_PROJECTIONS_EXPORT void remove(Store& store, std::string_view projector);

}  // namespace stela::projections

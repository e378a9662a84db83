// Operations on projectors that don't need their code, for tools.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/framework/query.hpp>
#include <stela/projections/export.hpp>
#include <stela/projections/states.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// The state of one build of a projector, or of a reaction.
struct ProjectorStatus {
  std::string name = {};
  /// The number of its set of tables, which are called "<name>@<build>.<table>".
  std::int64_t build = 0;
  int version = 1;
  ProjectionKind kind = ProjectionKind::async;
  BuildState state = BuildState::living;
  /// Events up to this sequence are in its tables.
  GlobalSequence position = {};
  /// How many events it is behind the store, and how long the first of them has waited, which is
  /// how stale its model is; 0 if it has caught up. Computing it takes one lookup by sequence.
  std::int64_t lag_events = 0;
  std::chrono::microseconds lag{0};
  /// The runner that drives it; empty if there is none.
  std::string owner = {};
  Timestamp lease_until = {};
  /// The event that can't be handled, or 0, since when, and the error.
  GlobalSequence failing = {};
  std::optional<Timestamp> failing_since = {};
  std::string error = {};
  int attempts = 0;
  Timestamp next_attempt_at = {};
  bool stopped = false;
  std::optional<Timestamp> stopped_at = {};
  std::int64_t parked = 0;
  std::int64_t skipped = 0;
};

/// A parked event of a projector.
struct ParkedEvent {
  GlobalSequence sequence = {};
  std::string type = {};
  ParkedEventState state = ParkedEventState::parked;
  Timestamp parked_at = {};
  int attempts = 0;
  std::string error = {};
};

struct ParkedEventQuery {
  Direction direction = Direction::forward;
  /// Only events that come after this one in the direction, for the next page; 0: all.
  GlobalSequence after = {};
  int limit = 100;
};

/// Inspects and changes the projectors and reactions of a database, without their code. Runners
/// notice changes at once, in any process. An operation on a projector throws NotFound if the
/// database doesn't have the projector, UsageError if its state doesn't allow the operation, and
/// SchemaMismatch if only a newer version of Stela knows its kind. Threads: any number at once,
/// beside runners and appends.
class STELA_PROJECTIONS_EXPORT ProjectionOperations {
 public:
  /// The store must outlive it; its handle may be moved.
  /// `who` is the operator, for the journal. Empty: the user and host of the process.
  explicit ProjectionOperations(Store& store, std::string who = {});

  /// All projectors and reactions in the database, by name and build. Empty if there are none.
  std::vector<ProjectorStatus> status();
  /// The events that the living build of a projector parked or skipped, in order.
  std::vector<ParkedEvent> parked(std::string_view projector, const ParkedEventQuery& query = {});

  /// Tries the stopped or failing event again at once, with a new count of attempts. Also applies
  /// to a stopped rebuild.
  void retry(std::string_view projector);
  /// Tries one parked event again.
  void retry(std::string_view projector, GlobalSequence sequence);
  /// Skips the failing event and continues after it, also in a stopped rebuild; or discards a
  /// parked event. The skip is recorded.
  void skip(std::string_view projector, GlobalSequence sequence);

  /// Cancels a running or stopped rebuild and drops its tables.
  void cancel_rebuild(std::string_view projector);
  /// Drops the scratch tables of a replay. A running replay stops.
  void drop_replay(std::string_view projector);
  /// Stops requiring the inline projector for appends, so that a process without it can append. The
  /// model then falls behind. The next process that registers the projector catches it up first.
  void leave_behind(std::string_view projector);
  /// Removes the projector or reaction from the database, with all of its tables and views.
  void remove(std::string_view projector);

 private:
  Store& store_;
  const std::string who_;
};

}  // namespace stela

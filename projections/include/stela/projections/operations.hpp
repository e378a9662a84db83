// What operators do with projectors, without having their code: for tools.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/projections/export.hpp>
#include <stela/projections/states.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// One build of a projector, or a reaction, as it stands.
struct ProjectorStatus {
  std::string name = {};
  /// Which set of tables: they are called "<name>@<build>.<table>".
  std::int64_t build = 0;
  int version = 1;
  ProjectionKind kind = ProjectionKind::async;
  BuildState state = BuildState::living;
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

/// An event that a projector couldn't take, and was put aside.
struct ParkedEvent {
  GlobalSequence sequence = {};
  ParkedEventState state = ParkedEventState::parked;
  Timestamp parked_at = {};
  int attempts = 0;
  std::string error = {};
};

struct ParkedEventQuery {
  /// Only events after this one: for the next page.
  GlobalSequence after = {};
  int limit = 100;
};

/// Looks at the projectors and reactions of a database, and changes how they stand; it needs none
/// of their code. Runners notice at once, in whichever process they are.
/// Whatever acts on a projector throws NotFound if the database doesn't have it, UsageError if
/// there is nothing to do it with, and SchemaMismatch if only a newer version of Stela knows what
/// it is. Threads: any number at once, beside runners and appends.
class STELA_PROJECTIONS_EXPORT ProjectionOperations {
 public:
  /// The store must outlive it; its handle may be moved.
  explicit ProjectionOperations(Store& store) : store_{store.anchor()} {}

  /// Everything that the database knows of, by name and build. Empty if it has no projections.
  std::vector<ProjectorStatus> status();
  /// What the living build of a projector parked and skipped, in order.
  std::vector<ParkedEvent> parked(std::string_view projector, const ParkedEventQuery& query = {});

  /// The halted or failing event is tried again at once, as if for the first time; in a rebuild
  /// that stopped as well.
  void retry(std::string_view projector);
  /// A parked event is tried again, by itself.
  void retry(std::string_view projector, GlobalSequence sequence);
  /// Continues after the event that fails, also in a rebuild that stopped, or gives a parked one
  /// up; that it was skipped is recorded.
  void skip(std::string_view projector, GlobalSequence sequence);

  /// The rebuild that is under way, or stopped, is given up: its tables are dropped.
  void cancel_rebuild(std::string_view projector);
  /// The scratch tables of a replay are dropped; of one that is under way, it stops.
  void drop_replay(std::string_view projector);
  /// Appends no longer require the inline projector: for a process that can't have it. Its model
  /// falls behind; the next process that registers it catches it up first.
  void leave_behind(std::string_view projector);
  /// The database forgets the projector or reaction, with all of its tables and views.
  void remove(std::string_view projector);

 private:
  Store& store_;
};

}  // namespace stela

// The rows of the table `projections`: builds and their owners.
#pragma once

#include "database/connection.hpp"
#include "follow/failing.hpp"
#include "follow/lease.hpp"

#include <stela/framework/clock.hpp>
#include <stela/projections/states.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::projections {

/// One set of tables of a projector, or the checkpoint of a reaction.
struct Build {
  std::string name = {};
  std::int64_t number = 0;
  int version = 1;
  ProjectionKind kind = ProjectionKind::async;
  BuildState state = BuildState::living;
  std::int64_t position = 0;
  std::int64_t epoch = 0;
  /// Empty if it has no owner.
  std::string owner = {};
  follow::StoredLease lease = {};
  /// The event that can't be handled. A stop needn't have an event.
  follow::Failing failing = {};
  bool stopped = false;
  /// It stopped because no runner knew the version of an event. This runner's next commit ends the
  /// stop.
  bool resumes = false;
  std::optional<Timestamp> failing_since = {};
  std::optional<Timestamp> stopped_at = {};
  /// Of a replay: what it is for, where it ends, and whose tables it writes if not its own. Of
  /// other builds `upto` is the checksum of the statements that made their tables; 0 if there are
  /// none.
  std::string filter = {};
  std::int64_t upto = 0;
  std::int64_t target = 0;
  std::int64_t definitions = 0;
  Timestamp began_at = {};
  Timestamp changed_at = {};

  /// The prefix of its tables' names.
  std::string prefix() const {
    return name + '@' + std::to_string(target != 0 ? target : number) + '.';
  }
  /// For messages: "projector 'totals' v2".
  std::string describe() const;
};

/// Whether projections were ever used in this database.
bool has_tables(database::Connection& connection);
/// All of them, by name and number, also those that only a newer Stela knows.
std::vector<Build> list_builds(database::Connection& connection);
/// All builds, for working on them. SchemaMismatch if only a newer Stela knows one.
std::vector<Build> read_builds(database::Connection& connection);
/// The builds of one name; SchemaMismatch as above.
std::vector<Build> read_builds(database::Connection& connection, std::string_view name);
/// Null if there is none.
const Build* find(const std::vector<Build>& builds, std::string_view name,
                  BuildState state) noexcept;

/// How many events a build is behind the store, which ends at `last`, and how long the first of
/// those events has waited.
std::pair<std::int64_t, std::chrono::microseconds> lag_of(database::Connection& connection,
                                                          const Build& build, std::int64_t last,
                                                          Timestamp now);

/// Records the statements that created its tables.
void note_statements(database::Connection& connection, Build& build, std::int64_t checksum);
/// Inserts a row, and sets the build's number.
void insert(database::Connection& connection, Build& build, Timestamp now);
/// Records a later end of a replay.
void set_upto(database::Connection& connection, const Build& build);
void set_state(database::Connection& connection, const Build& build, BuildState state,
               Timestamp now);

/// True if it has no owner, or the lease has run out.
bool is_free(const Build& build, Timestamp now) noexcept;
/// The same, and true if its owner is seen to have ended.
bool is_free(const Build& build, Timestamp now, const database::Database& database) noexcept;
/// Takes a build that was free when it was read, unless it has changed since. Gives it a new epoch.
bool acquire(database::Connection& connection, Build& build, const follow::Term& lease);
/// Takes the build from its owner, which notices the new epoch and leaves the build alone.
void seize(database::Connection& connection, Build& build, const follow::Term& lease);
/// Takes the build from its owner and leaves it free.
void dispossess(database::Connection& connection, const Build& build);
/// False if the build has a new owner.
bool renew(database::Connection& connection, const Build& build, Timestamp until);
void release(database::Connection& connection, const Build& build);

/// Moves the checkpoint, unless the build's position or owner has changed.
bool advance(database::Connection& connection, const Build& build, std::int64_t position,
             Timestamp lease_until);

}  // namespace stela::projections

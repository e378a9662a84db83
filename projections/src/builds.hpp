// The rows of the table `projections`: builds, and who drives them.
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
  /// Empty if nobody drives it.
  std::string owner = {};
  follow::StoredLease lease = {};
  /// The event that couldn't be handled. What stopped it may have no event.
  follow::Failing failing = {};
  bool stopped = false;
  /// It stopped as no runner knew the version of an event. What this runner commits next ends that.
  bool resumes = false;
  std::optional<Timestamp> failing_since = {};
  std::optional<Timestamp> stopped_at = {};
  /// Of a replay: what it is for, where it ends, and whose tables it writes if not its own. Of
  /// other builds `upto` is the checksum of the statements that made their tables; 0 if it isn't
  /// known.
  std::string filter = {};
  std::int64_t upto = 0;
  std::int64_t target = 0;
  std::int64_t definitions = 0;
  Timestamp began_at = {};
  Timestamp changed_at = {};

  /// What the names of its tables begin with.
  std::string prefix() const {
    return name + '@' + std::to_string(target != 0 ? target : number) + '.';
  }
  /// For messages: "projector 'totals' v2".
  std::string describe() const;
};

/// All of them, by name and number, also those that only a newer Stela knows.
std::vector<Build> list_builds(database::Connection& connection);
/// All of them, for who works on them. SchemaMismatch if only a newer Stela knows one.
std::vector<Build> read_builds(database::Connection& connection);
/// Those of one name; SchemaMismatch as above.
std::vector<Build> read_builds(database::Connection& connection, std::string_view name);
/// Null if there is none.
const Build* find(const std::vector<Build>& builds, std::string_view name,
                  BuildState state) noexcept;

/// How many events a build is behind the store, which ends at `last`, and how long the first of
/// them has waited.
std::pair<std::int64_t, std::chrono::microseconds> lag_of(database::Connection& connection,
                                                          const Build& build, std::int64_t last,
                                                          Timestamp now);

/// Notes the statements that made its tables.
void note_statements(database::Connection& connection, Build& build, std::int64_t checksum);
/// A new row; `build` gets its number.
void insert(database::Connection& connection, Build& build, Timestamp now);
/// A replay ends later.
void set_upto(database::Connection& connection, const Build& build);
void set_state(database::Connection& connection, const Build& build, BuildState state,
               Timestamp now);

/// True if nobody has it, or its lease is over.
bool is_free(const Build& build, Timestamp now) noexcept;
/// The same, and true if its owner is seen to have ended.
bool is_free(const Build& build, Timestamp now, const database::Database& database) noexcept;
/// Takes a build that was free when it was read, if it is still as it was: it has a new epoch then.
bool acquire(database::Connection& connection, Build& build, const follow::Term& lease);
/// Takes the build from whoever has it: they find out by the epoch, and do nothing more to it.
void seize(database::Connection& connection, Build& build, const follow::Term& lease);
/// Takes the build from whoever has it, for whoever comes next.
void dispossess(database::Connection& connection, const Build& build);
/// False if somebody else has taken the build.
bool renew(database::Connection& connection, const Build& build, Timestamp until);
void release(database::Connection& connection, const Build& build);

/// Moves the checkpoint on, if the build is still where and whose it was.
bool advance(database::Connection& connection, const Build& build, std::int64_t position,
             Timestamp lease_until);

}  // namespace stela::projections

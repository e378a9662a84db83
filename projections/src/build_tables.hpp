// The tables of builds, and the views that readers use.
#pragma once

#include "build_model.hpp"
#include "builds.hpp"

#include <stela/eventstore/rows.hpp>
#include <stela/projections/projector.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stela::projections {

/// How an engine creates, shows and drops the tables of builds. Threads: any number at once.
class Tables {
 public:
  virtual ~Tables() = default;

  /// Lets the projector create the tables of a new build, and records their definitions. UsageError
  /// if another object has one of the plain names.
  virtual void make(database::Connection& connection, const Build& build,
                    detail::AnyProjector& projector, BuildModel& model) const = 0;
  /// Describes what has changed since the projector created the tables; empty if nothing has.
  virtual std::string find_alteration(database::Connection& connection,
                                      const Build& build) const = 0;
  /// Points the views of the plain names at `build`. UsageError if another object has one of the
  /// names.
  virtual void show(database::Connection& connection, const Build& build) const = 0;
  /// Removes the views that point at `build`.
  virtual void hide(database::Connection& connection, const Build& build) const = 0;
  virtual void drop(database::Connection& connection, const Build& build) const = 0;
  /// Whether this process may drop them.
  virtual bool may_drop(database::Connection&, const Build&) const { return true; }

  /// Runs one query of the user on the views, as `ModelReader` promises.
  virtual void query(database::Connection& connection, std::string_view sql,
                     std::span<const SqlValue> values, Rows* rows) const = 0;
};

/// The tables of the connection's engine.
const Tables& tables_of(const database::Connection& connection);

/// Removes a build: its tables, parked events and row.
void drop(database::Connection& connection, const Build& build);

}  // namespace stela::projections

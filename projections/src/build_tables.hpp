// The tables of builds, and the views that readers address.
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

/// What an engine does about them. Threads: any number at once.
class Tables {
 public:
  virtual ~Tables() = default;

  /// Lets the projector make the tables of a new build, and notes how they were defined. UsageError
  /// if something else has one of the plain names.
  virtual void make(database::Connection& connection, const Build& build,
                    detail::AnyProjector& projector, BuildModel& model) const = 0;
  /// What is no longer as the projector made it, in words; empty if nothing.
  virtual std::string find_alteration(database::Connection& connection,
                                      const Build& build) const = 0;
  /// Makes the views of the plain names stand for `build`. UsageError if something else has one of
  /// the names.
  virtual void show(database::Connection& connection, const Build& build) const = 0;
  /// Takes those views away that stand for `build`.
  virtual void hide(database::Connection& connection, const Build& build) const = 0;
  virtual void drop(database::Connection& connection, const Build& build) const = 0;
  /// Whether this process has the right to drop them.
  virtual bool may_drop(database::Connection&, const Build&) const { return true; }

  /// Runs one query of the user's on the views, as `ModelReader` promises.
  virtual void query(database::Connection& connection, std::string_view sql,
                     std::span<const SqlValue> values, Rows* rows) const = 0;
};

/// Of the engine that `connection` is one of.
const Tables& tables_of(const database::Connection& connection);

/// Removes a build: its tables, what it parked and its row.
void drop(database::Connection& connection, const Build& build);

}  // namespace stela::projections

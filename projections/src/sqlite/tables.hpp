// The tables of builds, and the views that readers address.
#pragma once

#include "builds.hpp"
#include "sqlite/read_model.hpp"

#include <stela/projections/projector.hpp>

#include <string>

namespace stela::projections {

/// Lets the projector make the tables of a new build, and notes how they were defined. UsageError
/// if something else has one of the plain names.
void make_tables(database::Connection& connection, const Build& build,
                 detail::AnyProjector& projector, SqliteReadModel& model);

/// What is no longer as the projector made it, in words; empty if nothing.
std::string find_alteration(database::Connection& connection, const Build& build);

/// Makes the views of the plain names stand for `build`. UsageError if something else has one of
/// the names.
void show(database::Connection& connection, const Build& build);
/// Takes the views of `build` away.
void hide(database::Connection& connection, const Build& build);

/// Removes a build: its tables, what it parked and its row.
void drop(database::Connection& connection, const Build& build);

}  // namespace stela::projections

// How a new build replaces the living one.
#pragma once

#include "feed.hpp"
#include "seat.hpp"

#include <stela/framework/detail/function_ref.hpp>

namespace stela::projections {

/// Creates a new build of a projector beside the existing ones: its tables, and its row in the
/// state `building`, at the beginning.
Build begin_build(database::Connection& connection, Store& store,
                  const detail::Registration& registration);

/// False if the projector's `create` would make other tables than the build has. True if that is
/// unknown.
bool has_same_statements(const Build& build, const detail::Registration& registration);
/// UsageError with advice if they differ.
void require_same_statements(const Build& build, const detail::Registration& registration);

/// Removes an abandoned build of another version. UsageError if it still has an owner.
void clear_way(database::Connection& connection, Store& store, const Build& building);

/// Inside a transaction: projects the events of `query` that the seat still lacks, under the lock
/// that keeps out appends. If it throws, the seat no longer matches its build.
void finish(database::Connection& connection, Store& store, Feed& feed, Seat& seat, AllQuery query);

/// True if few enough events are missing for the transaction that takes over.
bool is_near_the_end(Store& store, const Build& build);

/// If hardly anything is missing, projects it and makes the build the living one, all in one
/// transaction; otherwise returns false. StoreBusy if another process has the build now.
bool take_over(Store& store, Feed& feed, Seat& seat);

/// Runs `part`, which redirects views, and repeats it while readers of the views are in the way: on
/// a server they hold them until their transactions end. StoreBusy if they stay too long.
void past_readers(Store& store, FunctionRef<void()> part);

/// Inside a transaction: points the views at `build`, and retires the living one.
void put_in_place(database::Connection& connection, const Build& build, Timestamp now);

/// Drops builds that were retired before `before`. Returns how many.
int drop_retired(Store& store, Timestamp before);

}  // namespace stela::projections

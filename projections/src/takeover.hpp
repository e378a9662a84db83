// How a new build takes the place of the living one.
#pragma once

#include "feed.hpp"
#include "seat.hpp"

#include <stela/framework/detail/function_ref.hpp>

namespace stela::projections {

/// Makes a new build of a projector beside what is there: its tables, and its row in the state
/// `building`, standing at the beginning.
Build begin_build(database::Connection& connection, Store& store,
                  const detail::Registration& registration);

/// False if the projector's `create` would make other tables than those of the build. True if that
/// can't be told.
bool has_same_statements(const Build& build, const detail::Registration& registration);
/// UsageError, which says what to do, if they differ.
void require_same_statements(const Build& build, const detail::Registration& registration);

/// A build of another version that nobody drives any more makes room. UsageError if somebody does.
void clear_way(database::Connection& connection, Store& store, const Build& building);

/// Inside a transaction: projects the events of `query` that the seat has before it, under the lock
/// that keeps appends out. If it throws, the seat isn't where its build is.
void finish(database::Connection& connection, Store& store, Feed& feed, Seat& seat, AllQuery query);

/// Few enough events are missing for the transaction that takes over.
bool is_near_the_end(Store& store, const Build& build);

/// If hardly anything is missing, projects it and puts the build in the place of the living one,
/// all in one transaction; else false. StoreBusy if somebody else has the build now.
bool take_over(Store& store, Feed& feed, Seat& seat);

/// Runs `part`, which turns views, again after a while if readers of them are in the way: on a
/// server they hold them as long as their transactions last. StoreBusy if they stay too long.
void past_readers(Store& store, FunctionRef<void()> part);

/// Inside a transaction: the views stand for `build` from now on, and what was living is retired.
void put_in_place(database::Connection& connection, const Build& build, Timestamp now);

/// Drops what was retired before `before`. How many builds.
int drop_retired(Store& store, Timestamp before);

}  // namespace stela::projections

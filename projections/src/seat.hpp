// A build and the code that drives it.
#pragma once

#include "build_model.hpp"
#include "builds.hpp"
#include "follow/caught.hpp"

#include <stela/projections/projections.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::projections {

/// Threads: one at a time.
struct Seat {
  Seat(Store& store, const detail::Registration& the_registration, const Build& the_build);

  detail::Handling handling(const EventKind& kind) {
    return projector ? projector->handling(kind) : process->handling(kind);
  }

  bool has_timers() const noexcept { return process && !process->timer_kinds().empty(); }

  const detail::Registration& registration;
  /// The build as last read or written.
  Build build;
  /// For a replay into living tables: the build that owns the tables. Its runner waits meanwhile,
  /// so that nobody else writes them.
  std::optional<Build> shut_out = {};
  /// This process drives it, to the best of its knowledge: each update checks the epoch.
  bool held = false;
  /// How often in a row its handler was short of memory. These aren't attempts, but lengthen
  /// pauses.
  int shortages = 0;
  /// For a process: the generation of the last timer set, and when to fire the next one; never if
  /// none is pending.
  std::int64_t generation = 0;
  Timestamp next_wake = Timestamp::max();
  /// It has timers that other runners don't know and this one does.
  bool knows_unknown = false;
  /// The last failing event without an attempt that this runner has examined, and whether it needs
  /// a version that only another release knows.
  std::int64_t looked_at = 0;
  bool refuses = false;
  /// The build is left to a runner of that release for now; because of a timer, only until then.
  bool is_left = false;
  Timestamp left_until = {};
  /// Exactly one is set. A projector also has a model.
  std::unique_ptr<detail::AnyProjector> projector;
  std::unique_ptr<detail::AnyProcess> process;
  std::unique_ptr<BuildModel> model;
  /// Errors caught in the open or last transaction, reported after the commit.
  std::vector<follow::CaughtStatement> caught;
  /// Names the handler to a writer that waits for it.
  const std::string who;
  /// Events of the current batch, if they were decoded ahead.
  detail::AnyDecoded* decoded = nullptr;
};

/// Logs and counts failed statements after which its handlers continued.
void report_caught(Store& store, Seat& seat);

}  // namespace stela::projections

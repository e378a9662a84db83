// A build together with the code that drives it.
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
  /// As it was last read or written.
  Build build;
  /// Of a replay into living tables: the build whose tables they are. Its runner waits meanwhile,
  /// so that nobody else writes them.
  std::optional<Build> shut_out = {};
  /// This process drives it, as far as it knows: each update compares the epoch.
  bool held = false;
  /// How often in a row its handler was short of memory: no attempts, but its pauses grow.
  int shortages = 0;
  /// Of a process: the generation of the timer that was set last, and when the next one is to be
  /// fired; never if none waits.
  std::int64_t generation = 0;
  Timestamp next_wake = Timestamp::max();
  /// Timers that other runners didn't know wait for this one.
  bool knows_unknown = false;
  /// The failing event without an attempt that this runner has looked at last, and whether it needs
  /// a version that only another release knows.
  std::int64_t looked_at = 0;
  bool refuses = false;
  /// The build is left to a runner of that release for now; for a timer only until then.
  bool is_left = false;
  Timestamp left_until = {};
  /// One of the two, and the tables of the first.
  std::unique_ptr<detail::AnyProjector> projector;
  std::unique_ptr<detail::AnyProcess> process;
  std::unique_ptr<BuildModel> model;
  /// In the transaction that is open, or was committed last: reported after the commit.
  std::vector<follow::CaughtStatement> caught;
  /// For the message to a writer that waits for a handler.
  const std::string who;
  /// The events of the batch that it is being taken through, if they were decoded ahead.
  detail::AnyDecoded* decoded = nullptr;
};

/// Logs and counts the statements after which its handlers continued.
void report_caught(Store& store, Seat& seat);

}  // namespace stela::projections

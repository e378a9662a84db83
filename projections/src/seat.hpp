// A build together with the code that drives it.
#pragma once

#include "builds.hpp"
#include "sqlite/read_model.hpp"

#include <stela/projections/projections.hpp>

#include <memory>

namespace stela::projections {

/// Threads: one at a time.
struct Seat {
  Seat(Store& store, const detail::Registration& the_registration, const Build& the_build);

  detail::Handling handling(const EventKind& kind) {
    return projector ? projector->handling(kind) : reaction->handling(kind);
  }

  const detail::Registration& registration;
  /// As it was last read or written.
  Build build;
  /// This process drives it, as far as it knows: each update compares the epoch.
  bool held = false;
  /// How often in a row its handler was short of memory: no attempts, but its pauses grow.
  int shortages = 0;
  /// One of the two, and the tables of the first.
  std::unique_ptr<detail::AnyProjector> projector;
  std::unique_ptr<detail::AnyReaction> reaction;
  std::unique_ptr<SqliteReadModel> model;
  /// The events of the batch that it is being taken through, if they were decoded ahead.
  detail::AnyDecoded* decoded = nullptr;
};

}  // namespace stela::projections

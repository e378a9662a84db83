#include "seat.hpp"

#include <utility>

namespace stela::projections {

Seat::Seat(Store& store, const detail::Registration& the_registration, const Build& the_build)
    : registration{the_registration}, build{the_build}, who{the_build.describe()} {
  if (registration.make_process) {
    process = registration.make_process();
    return;
  }
  projector = registration.make_projector();
  model = make_model(store, build);
}

void report_caught(Store& store, Seat& seat) {
  // Logging them may append, which calls the handlers again.
  const auto caught = std::exchange(seat.caught, {});
  if (caught.empty()) return;
  follow::report_caught(
      store.conventions(), seat.build.name, "projection.statement_failed",
      {{"projector", seat.build.name}, {"version", std::to_string(seat.build.version)}}, caught);
}

}  // namespace stela::projections

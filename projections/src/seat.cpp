#include "seat.hpp"

#include <array>
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
  // What logs them may append, which calls the handlers again.
  const std::vector<CaughtStatement> caught = std::exchange(seat.caught, {});
  for (const CaughtStatement& each : caught) {
    const std::array fields{LogEntry::Field{"projector", seat.build.name},
                            LogEntry::Field{"version", std::to_string(seat.build.version)},
                            LogEntry::Field{"problem", each.error}};
    const std::string message =
        each.where + ": its handler continued after a statement had failed: " + each.error;
    store.conventions().log->write({.level = LogLevel::warning,
                                    .name = "projection.statement_failed",
                                    .message = message,
                                    .fields = fields});
    store.conventions().metrics->count("stela_handler_failed_statements_total", 1,
                                       {{"handler", seat.build.name}});
  }
}

}  // namespace stela::projections

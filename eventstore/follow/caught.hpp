// Reports failed statements of a handler that continued after them.
#pragma once

#include "database/failure_watch.hpp"

#include <stela/framework/event_store.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::follow {

struct CaughtStatement {
  /// The handler's input: "event 7 …".
  std::string where;
  std::string error;
};

/// Called after a handler returned. Calls `describe` only if there is something to report.
template <class Describe>
void take_caught(database::FailureWatch& watch, std::vector<CaughtStatement>& caught,
                 Describe describe) {
  std::string refusal = watch.take_refusal();
  if (!refusal.empty()) caught.push_back({describe(), std::move(refusal)});
}

/// Logs and counts them, once the handler's changes are committed: `handler` is its name in
/// metrics, and `fields` are those of its log entries.
inline void report_caught(const Conventions& conventions, std::string_view handler,
                          std::string_view log_name, const std::vector<LogEntry::Field>& fields,
                          const std::vector<CaughtStatement>& caught) {
  for (const CaughtStatement& each : caught) {
    std::vector<LogEntry::Field> all = fields;
    all.push_back({"problem", each.error});
    all.push_back({"event", each.where});
    const std::string message =
        each.where + ": its handler continued after a statement had failed: " + each.error;
    conventions.log->write({LogLevel::warning, log_name, message, all});
    conventions.metrics->count("stela_handler_failed_statements_total", 1, {{"handler", handler}});
  }
}

}  // namespace stela::follow

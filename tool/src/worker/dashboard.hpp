// The dashboard: shows what the crew does until it has ended.
#pragma once

#include "worker/crew.hpp"
#include "worker/layout.hpp"
#include "worker/status_watch.hpp"

#include <string>

namespace stela::tool {

struct DashboardOptions {
  std::string database = {};
  std::string broker_url = {};
  std::string worker = {};
  std::chrono::seconds window{0};
  bool color = true;
};

/// Returns when the crew has ended: because somebody asked for it here, or elsewhere.
/// Threads: the one that owns the terminal.
void show_dashboard(Crew& crew, Statistics& statistics, StatusWatch& watch,
                    const DashboardOptions& options);

}  // namespace stela::tool

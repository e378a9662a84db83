// The dashboard: shows on a terminal what goes on, until it has ended.
#pragma once

#include "cli/output.hpp"
#include "worker/crew.hpp"
#include "worker/status_watch.hpp"
#include "worker/view.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace stela::tool {

/// What a dashboard shows.
/// Threads: the one that owns the terminal.
class Watched {
 public:
  virtual ~Watched() = default;

  virtual View look() = 0;
  /// Somebody wants to leave.
  virtual void leave() = 0;
  /// It will have ended soon.
  virtual bool is_ending() const = 0;
  virtual bool has_ended() = 0;
};

/// Returns once it has ended: because somebody asked for it here, or elsewhere.
void show_dashboard(Watched& watched, bool color);

/// Whether there is a terminal to draw on, and a keyboard.
bool can_show_dashboard(const Output& out);

struct CrewDashboard {
  std::string program = {};
  std::string database = {};
  std::string broker_url = {};
  std::string worker = {};
  std::chrono::seconds window{0};
};

/// The workers of this process. Leaving asks them to stop.
class WatchedCrew final : public Watched {
 public:
  /// All must outlive it.
  WatchedCrew(Crew& crew, Statistics& statistics, StatusWatch& watch, const CrewDashboard& options)
      : crew_{crew}, statistics_{statistics}, watch_{watch}, options_{options} {}

  View look() override;
  void leave() override { crew_.request_stop(); }
  bool is_ending() const override { return crew_.stop_requested(); }
  bool has_ended() override { return crew_.has_ended(); }

 private:
  std::string stream_of(std::int64_t sequence);

  Crew& crew_;
  Statistics& statistics_;
  StatusWatch& watch_;
  const CrewDashboard& options_;
  Trend trend_;
  std::map<std::int64_t, std::string> streams_;
};

}  // namespace stela::tool

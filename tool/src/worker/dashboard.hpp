// The dashboard: shows on a terminal what goes on, until it has ended.
#pragma once

#include "cli/output.hpp"
#include "worker/crew.hpp"
#include "worker/status_watch.hpp"
#include "worker/view.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stela::tool {

/// What is seen of an outbox beside its status: how fast it is, and what goes wrong.
/// Threads: one at a time.
class Sight {
 public:
  /// Asks the database for what `status` doesn't have, as rarely as that is needed. `own` is what
  /// this process did since it started.
  void look(OutboxOperations& operations, const OutboxStatus& status, const Totals& own = {});
  /// Adds to a view what is known, why messages are parked, and each error once: those of
  /// partitions and workers, those of parked and retrying messages, and what else this process met.
  void show(View& view) const;

 private:
  Trend trend_;
  std::vector<RecentError> errors_;
  std::vector<FailureGroup> failures_;
  /// When the errors were asked for, and how many messages had one.
  Timestamp errors_at_ = {};
  std::int64_t failing_ = 0;
};

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
  std::chrono::microseconds lease_ttl{0};
  std::chrono::microseconds heartbeat_ttl{0};
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
  /// Its own workers as they see themselves now, instead of at their last heartbeat.
  void freshen(View& view) const;

  Crew& crew_;
  Statistics& statistics_;
  StatusWatch& watch_;
  const CrewDashboard& options_;
  Sight sight_;
};

}  // namespace stela::tool

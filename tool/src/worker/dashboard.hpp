// The dashboard: shows the work on a terminal until it ends.
#pragma once

#include "cli/output.hpp"
#include "worker/crew.hpp"
#include "worker/status_watch.hpp"
#include "worker/view.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace stela::tool {

/// Observations of an outbox beside its status: its speed and its errors. Threads: one at a time.
class Sight {
 public:
  /// Queries the database for data that `status` lacks, as rarely as possible. `own` is the work of
  /// this process since it started.
  void look(OutboxOperations& operations, const OutboxStatus& status, const Totals& own = {});
  /// Adds the known data to a view: why messages are parked, and each error once: those of
  /// partitions and workers, of parked and retrying messages, and others that this process met.
  void show(View& view) const;

 private:
  Trend trend_;
  std::vector<RecentError> errors_;
  std::vector<FailureGroup> failures_;
  /// The time of the last query for errors, and the number of messages with one at that time.
  Timestamp errors_at_ = {};
  std::int64_t failing_ = 0;
};

/// The subject of a dashboard. Threads: the one that owns the terminal.
class Watched {
 public:
  virtual ~Watched() = default;

  virtual View look() = 0;
  /// The user wants to leave.
  virtual void leave() = 0;
  /// True if it is about to end.
  virtual bool is_ending() const = 0;
  virtual bool has_ended() = 0;
};

/// Returns once the subject has ended: because the user left, or for another reason.
void show_dashboard(Watched& watched, bool color);

/// True if there is a terminal to draw on, and a keyboard.
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

/// The workers of this process. Leaving requests their stop.
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
  /// Updates its own workers from their present state instead of their last heartbeat.
  void freshen(View& view) const;

  Crew& crew_;
  Statistics& statistics_;
  StatusWatch& watch_;
  const CrewDashboard& options_;
  Sight sight_;
};

}  // namespace stela::tool

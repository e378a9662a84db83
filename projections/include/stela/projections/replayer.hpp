// Replays events through projectors: to rebuild their tables, or to examine a part of the history.
#pragma once

#include <stela/projections/export.hpp>
#include <stela/projections/projections.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// Selects events. All bounds are inclusive; an empty list doesn't filter.
struct STELA_PROJECTIONS_EXPORT ReplayFilter {
  std::vector<std::string> streams = {};
  std::vector<std::string> categories = {};
  std::vector<std::string> event_types = {};
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  std::optional<Timestamp> since = {};
  std::optional<Timestamp> until = {};

  /// True if every event passes.
  bool is_empty() const noexcept;
};

/// Where a filtered replay writes.
enum class ReplayInto : std::uint8_t {
  /// Separate tables, so that nobody reads them by mistake. `ReplayResult` names them.
  scratch,
  /// The living tables, for projectors with `static constexpr bool is_idempotent = true;`.
  living,
};

struct ReplayProgress {
  /// How many events were read, and how many there are in all.
  std::int64_t done = 0;
  std::int64_t total = 0;
  double percent = 100;
  double events_per_second = 0;
  std::optional<std::chrono::seconds> time_left = {};
};

struct ReplayOptions {
  /// The projectors to replay; empty: all. Reactions are never replayed.
  std::vector<std::string> projectors = {};
  ReplayFilter filter = {};
  ReplayInto into = ReplayInto::scratch;
  /// Begin again from the start even if an earlier run of the same replay was cancelled or killed.
  bool restart = false;
  /// Read and decode on another thread, one page ahead. The thread ends before the call returns.
  bool decode_ahead = false;
  /// Called after each batch, on the thread that replays.
  std::function<void(const ReplayProgress&)> on_progress = {};
};

struct ReplayResult {
  struct Model {
    std::string projector = {};
    /// Its tables are called "<projector>@<build>.<table>".
    std::int64_t build = 0;
    /// Its tables contain events up to this sequence.
    GlobalSequence position = {};

    std::string table(std::string_view name) const {
      return projector + '@' + std::to_string(build) + '.' + std::string{name};
    }
  };
  std::vector<Model> models = {};
  /// False if it was stopped. The next run of the same replay continues from there.
  bool is_complete = false;
  /// True if it continued an earlier run.
  bool was_resumed = false;
};

struct EventTypeCount {
  std::string type = {};
  std::int64_t events = 0;
};

/// Feeds past events to projectors, in global order. Publishes nothing and calls no listener of a
/// bus. A replay appends nothing, and a handler that tries to append gets an error. In handlers,
/// `is_replaying()` is true, and `Recorded` has the original time, ids and correlation.
/// Threads: one at a time.
class STELA_PROJECTIONS_EXPORT Replayer {
 public:
  /// `projections` must outlive the replayer.
  explicit Replayer(Projections& projections) noexcept : projections_{projections} {}

  /// Without a filter this is a rebuild: it fills new tables beside the living ones, and replaces
  /// those in one transaction when the new ones have caught up. With a filter it fills scratch
  /// tables, or writes to the living ones while their runner waits. It resumes a run that was
  /// stopped or killed. UsageError if another process rebuilds or replays one of the projectors, or
  /// if a handler throws. After an error the living tables are unchanged. If the replay writes to
  /// them, they keep the events before the failing one, and the next run of the same replay
  /// continues there.
  ReplayResult run(const ReplayOptions& options = {}, std::stop_token stop = {});

  /// How many events of each type `filter` selects. Writes nothing.
  std::vector<EventTypeCount> dry_run(const ReplayFilter& filter = {});

 private:
  Projections& projections_;
};

}  // namespace stela

// Replays history through projectors: to rebuild their tables, or to look at a part of it.
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

/// Which events. All bounds are inclusive; an empty list doesn't filter.
struct STELA_PROJECTIONS_EXPORT ReplayFilter {
  std::vector<std::string> streams = {};
  std::vector<std::string> categories = {};
  std::vector<std::string> event_types = {};
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  std::optional<Timestamp> since = {};
  std::optional<Timestamp> until = {};

  /// True if it lets everything through.
  bool is_empty() const noexcept;
};

/// Where a filtered replay writes.
enum class ReplayInto : std::uint8_t {
  /// Tables of its own, which nobody reads by accident: `ReplayResult` names them.
  scratch,
  /// The living tables, for projectors that say `static constexpr bool is_idempotent = true;`.
  living,
};

struct ReplayProgress {
  /// Events that were looked through, and how many there are to look through.
  std::int64_t done = 0;
  std::int64_t total = 0;
  double percent = 100;
  double events_per_second = 0;
  std::optional<std::chrono::seconds> time_left = {};
};

struct ReplayOptions {
  /// All that are registered unless given. Reactions are never replayed.
  std::vector<std::string> projectors = {};
  ReplayFilter filter = {};
  ReplayInto into = ReplayInto::scratch;
  /// Begin anew even if an earlier run of the same replay was cancelled or killed.
  bool restart = false;
  /// Read and decode on a thread of its own, one page ahead; it ends before the call does.
  bool decode_ahead = false;
  /// Called on the thread that replays, after each batch.
  std::function<void(const ReplayProgress&)> on_progress = {};
};

struct ReplayResult {
  struct Model {
    std::string projector = {};
    /// Its tables are called "<projector>@<build>.<table>".
    std::int64_t build = 0;
    /// The end of what is in them.
    GlobalSequence position = {};

    std::string table(std::string_view name) const {
      return projector + '@' + std::to_string(build) + '.' + std::string{name};
    }
  };
  std::vector<Model> models = {};
  /// False if it was stopped: the next run of the same replay goes on from there.
  bool is_complete = false;
  /// It went on with what an earlier run had done.
  bool was_resumed = false;
};

struct EventTypeCount {
  std::string type = {};
  std::int64_t events = 0;
};

/// Feeds projectors with history, in global order. Nothing is published and nobody on the bus hears
/// of it: a replay appends nothing, and what a handler tries to append is refused. Handlers see
/// `is_replaying()`, and the time, ids and correlation of the original in `Recorded`.
/// Threads: one at a time.
class STELA_PROJECTIONS_EXPORT Replayer {
 public:
  /// `projections` must outlive the replayer.
  explicit Replayer(Projections& projections) noexcept : projections_{projections} {}

  /// Without a filter this is a rebuild: new tables are filled beside the living ones, and take
  /// their place in one transaction when they have caught up. With one it fills scratch tables, or
  /// goes over the living ones while their runner waits. What was stopped or killed before is gone
  /// on with. UsageError if somebody else rebuilds or replays one of the projectors, or a handler
  /// throws: then the living tables are as they were.
  ReplayResult run(const ReplayOptions& options = {}, std::stop_token stop = {});

  /// How many events of each type `filter` lets through. Writes nothing.
  std::vector<EventTypeCount> dry_run(const ReplayFilter& filter = {});

 private:
  Projections& projections_;
};

}  // namespace stela

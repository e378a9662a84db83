// Kinds of projections, and the states of their tables, parked events and timers.
#pragma once

#include <stela/projections/export.hpp>

#include <cstdint>
#include <string_view>

namespace stela {

enum class ProjectionKind : std::uint8_t {
  /// A projector that a Runner drives.
  async,
  /// A projector that takes part in appends.
  inline_,
  reaction,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// What a set of tables is for.
enum class BuildState : std::uint8_t {
  /// Being filled beside the living tables. It replaces them once it has caught up.
  building,
  /// The tables that are read.
  living,
  /// Replaced; its tables will be dropped.
  retired,
  /// The tables of a replay.
  scratch,
  /// Stored by a newer version of Stela.
  unrecognized,
};

enum class ParkedEventState : std::uint8_t {
  parked,
  /// An operator asked for a retry, which hasn't happened yet.
  retry,
  skipped,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// The states of a timer.
enum class TimerState : std::uint8_t {
  /// It isn't due yet, or will be tried again.
  pending,
  /// It is due, but no runner has known its kind or version so far. One that does will fire it.
  unknown,
  /// Its handler failed `max_attempts` times. An operator decides.
  parked,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// Why timers are held.
enum class HoldReason : std::uint8_t {
  /// The clock jumped forward beyond the limit.
  clock,
  /// The database is a restored backup: due timers may already have fired.
  restored,
  /// The store was imported: if the old one is still running, both would fire its timers.
  imported,
  /// An operator holds the timers.
  by_operator,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// The word in the database and in the tool's output: "inline" for `inline_`.
STELA_PROJECTIONS_EXPORT std::string_view to_string(ProjectionKind kind) noexcept;
STELA_PROJECTIONS_EXPORT std::string_view to_string(BuildState state) noexcept;
STELA_PROJECTIONS_EXPORT std::string_view to_string(ParkedEventState state) noexcept;
STELA_PROJECTIONS_EXPORT std::string_view to_string(TimerState state) noexcept;
/// "operator" for `by_operator`.
STELA_PROJECTIONS_EXPORT std::string_view to_string(HoldReason reason) noexcept;

}  // namespace stela

// Kinds of projections, and the states of their tables and parked events.
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
  /// Replaced; its tables are about to be dropped.
  retired,
  /// The tables of a replay.
  scratch,
  /// Stored by a newer version of Stela.
  unrecognized,
};

enum class ParkedEventState : std::uint8_t {
  parked,
  /// An operator asked for a retry, and no runner has done it yet.
  retry,
  skipped,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// The word in the database and in the tool's output: "inline" for `inline_`.
STELA_PROJECTIONS_EXPORT std::string_view to_string(ProjectionKind kind) noexcept;
STELA_PROJECTIONS_EXPORT std::string_view to_string(BuildState state) noexcept;
STELA_PROJECTIONS_EXPORT std::string_view to_string(ParkedEventState state) noexcept;

}  // namespace stela

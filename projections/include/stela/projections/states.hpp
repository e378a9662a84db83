// What a projection is, and where its tables and its parked events stand.
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
  /// It is filled beside the living one, and takes its place once it has caught up.
  building,
  /// The one that is read.
  living,
  /// Replaced, until its tables are dropped.
  retired,
  /// A replay's own.
  scratch,
  /// Stored by a newer version of Stela.
  unrecognized,
};

enum class ParkedEventState : std::uint8_t {
  parked,
  /// An operator had it retried, and no runner has done so yet.
  retry,
  skipped,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// The word that stands in the database and in the tool's output: "inline" for `inline_`.
STELA_PROJECTIONS_EXPORT std::string_view to_string(ProjectionKind kind) noexcept;
STELA_PROJECTIONS_EXPORT std::string_view to_string(BuildState state) noexcept;
STELA_PROJECTIONS_EXPORT std::string_view to_string(ParkedEventState state) noexcept;

}  // namespace stela

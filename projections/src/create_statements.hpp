// The statements of a projector's `create`, to detect whether a later program changes them.
#pragma once

#include <stela/projections/projector.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace stela::projections {

/// Statements that create tables, indexes and triggers, in order.
/// Threads: one at a time.
class CreateStatements {
 public:
  /// Other statements, spaces, and comments before a statement don't count. `prefix` is the prefix
  /// of the build's table names, which differs from build to build.
  void add(std::string_view sql, std::string_view prefix);
  /// A statement failed, so the rest of `create` depends on the database.
  void note_failure() noexcept { has_failed_ = true; }
  /// 0 if there were none, or one failed.
  std::int64_t checksum() const noexcept { return has_failed_ ? 0 : checksum_; }

 private:
  std::int64_t checksum_ = 0;
  bool has_failed_ = false;
};

/// The checksum of the statements that the projector's `create` would run; unset if it reads from
/// the database, or throws. Calls `create` without executing its statements.
std::optional<std::int64_t> checksum_of_create(detail::AnyProjector& projector);

}  // namespace stela::projections

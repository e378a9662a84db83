// What `create` of a projector runs, to tell whether a later program's does the same.
#pragma once

#include <stela/projections/projector.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace stela::projections {

/// Statements that make tables, indexes and triggers, in their order.
/// Threads: one at a time.
class CreateStatements {
 public:
  /// Other statements don't count, nor do spaces, nor comments before a statement. `prefix` is what
  /// the names of the build's tables begin with, which differs from build to build.
  void add(std::string_view sql, std::string_view prefix);
  /// One failed. What `create` runs after that depends on the database.
  void note_failure() noexcept { has_failed_ = true; }
  /// 0 if there were none, or one failed.
  std::int64_t checksum() const noexcept { return has_failed_ ? 0 : checksum_; }

 private:
  std::int64_t checksum_ = 0;
  bool has_failed_ = false;
};

/// What the projector's `create` would run; nothing if it reads from the database, or throws. It is
/// called, and what it runs isn't carried out.
std::optional<std::int64_t> checksum_of_create(detail::AnyProjector& projector);

}  // namespace stela::projections

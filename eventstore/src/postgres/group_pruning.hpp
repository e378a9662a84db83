// Removes old rows that settle commits in doubt.
#pragma once

#include "postgres/server_session.hpp"

#include <stela/framework/event_store.hpp>

#include <atomic>
#include <cstdint>

namespace stela::postgres {

/// Removes the rows of `append_groups` that nobody can ask for any more. Each process does its
/// share while appending, so that no maintenance is needed. Threads: any number at once.
class GroupPruning {
 public:
  /// The appends between two removals, and the most rows of one: twice as many as were added.
  static constexpr std::uint32_t appends_between = 1000;
  static constexpr std::int64_t rows_at_once = 2000;

  explicit GroupPruning(Sessions& sessions);

  /// Call it after an append. Failures are only logged.
  void note_append(const Conventions& conventions) noexcept;

 private:
  void prune();

  Sessions& sessions_;
  std::atomic<std::uint32_t> appends_;
};

}  // namespace stela::postgres

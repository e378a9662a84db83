// The end of the rows that commits in doubt are settled by.
#pragma once

#include "postgres/server_session.hpp"

#include <stela/framework/event_store.hpp>

#include <atomic>
#include <cstdint>

namespace stela::postgres {

/// Removes the rows of `append_groups` that nobody can ask for any more. Each process does its
/// share as it appends, so that nobody has to think of them. Threads: any number at once.
class GroupPruning {
 public:
  /// In how many appends once, and how many rows then at most: twice as many as were added.
  static constexpr std::uint32_t appends_between = 1000;
  static constexpr std::int64_t rows_at_once = 2000;

  explicit GroupPruning(Sessions& sessions);

  /// After an append. Failures are only logged.
  void note_append(const Conventions& conventions) noexcept;

 private:
  void prune();

  Sessions& sessions_;
  std::atomic<std::uint32_t> appends_;
};

}  // namespace stela::postgres

// Which blocks of sequences contain events of a kind.
#pragma once

#include "database/sqlite/connection.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stela::sqlite {

inline constexpr std::int64_t block_size = 1024;

constexpr std::int64_t block_of(std::int64_t sequence) noexcept {
  return sequence / block_size;
}

/// Records, for each kind, the blocks that a writer inserts events into; once for each block.
/// Threads: one at a time.
class KindBlocks {
 public:
  void note(Connection& connection, std::size_t kind, std::int64_t sequence);
  /// Forgets recorded blocks, because a rollback may have undone them.
  void clear() noexcept { noted_.clear(); }

 private:
  /// For each kind, its last recorded block plus 1.
  std::vector<std::int64_t> noted_;
};

}  // namespace stela::sqlite

// Which blocks of sequences have events of a kind.
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

/// What a writer notes of the events that it inserts, once for each kind in a block.
/// Threads: one at a time.
class KindBlocks {
 public:
  void note(Connection& connection, std::size_t kind, std::int64_t sequence);
  /// Something may have been rolled back.
  void clear() noexcept { noted_.clear(); }

 private:
  /// By kind: its last block that was noted, and 1 more.
  std::vector<std::int64_t> noted_;
};

}  // namespace stela::sqlite

#include "sqlite/kind_blocks.hpp"

#include "sqlite_sql/kinds.hpp"

namespace stela::sqlite {

void KindBlocks::note(Connection& connection, std::size_t kind, std::int64_t sequence) {
  const std::int64_t block = block_of(sequence);
  if (noted_.size() <= kind) noted_.resize(kind + 1);
  if (noted_[kind] == block + 1) return;
  connection.run(sql::insert_kind_block{.kind = static_cast<std::int64_t>(kind), .block = block});
  noted_[kind] = block + 1;
}

}  // namespace stela::sqlite

#include "sqlite/kind_blocks.hpp"

#include "sqlite_sql.hpp"

namespace stela::sqlite {

void KindBlocks::note(Connection& connection, std::size_t kind, std::int64_t sequence) {
  const std::int64_t block = block_of(sequence);
  if (noted_.size() <= kind) noted_.resize(kind + 1);
  if (noted_[kind] == block + 1) return;
  connection.query(sql::insert_kind_block)
      .bind(1, static_cast<std::int64_t>(kind))
      .bind(2, block)
      .run();
  noted_[kind] = block + 1;
}

}  // namespace stela::sqlite

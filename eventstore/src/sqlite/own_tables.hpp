// Decides what the user's SQL may do in a transaction of the store.
#pragma once

#include "database/sqlite/caller_sql.hpp"

#include <string>

namespace stela::sqlite {

/// It may read every table, but create and write only tables that aren't Stela's.
/// Threads: the leader.
class OwnTables final : public CallerSql {
 public:
  OwnTables() : CallerSql{{}} {}

 private:
  std::string refusal_of(const Action& action) override;
  void check(sqlite3_stmt* statement) const override;
};

}  // namespace stela::sqlite

// What SQL of the user's may do in a transaction of the store.
#pragma once

#include "database/sqlite/caller_sql.hpp"

#include <string>

namespace stela::sqlite {

/// It reads every table, and writes and makes only those that aren't Stela's.
/// Threads: the one that leads.
class OwnTables final : public CallerSql {
 public:
  OwnTables() : CallerSql{{}} {}

 private:
  std::string refusal_of(const Action& action) override;
  void check(sqlite3_stmt* statement) const override;
};

}  // namespace stela::sqlite

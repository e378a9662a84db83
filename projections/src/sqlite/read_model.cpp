#include "sqlite/read_model.hpp"

#include "database/sqlite/sql_text.hpp"

#include <stela/framework/error.hpp>

namespace stela::projections {

SqliteReadModel::SqliteReadModel(sqlite::Driver& driver, std::string who, std::string prefix)
    : CallerSql{std::move(who)}, driver_{driver}, prefix_{std::move(prefix)} {}

SqliteReadModel::~SqliteReadModel() {
  if (!has_statements()) return;
  try {
    driver_.tidy([this] { clear(); });
  } catch (const UsageError&) {
    // A forked child leads no transaction: leave its copy of an open one as it is.
    if (sqlite3_get_autocommit(driver_.writing().handle()) != 0) return;
    abandon();
  }
}

std::int64_t SqliteReadModel::run(std::string_view sql, std::span<const SqlValue> values,
                                  Rows* rows) try {
  const std::int64_t changed = run_on(driver_.writing(), sql, values, rows);
  if (creating_) created_.add(sql, prefix_);
  return changed;
} catch (...) {
  created_.note_failure();
  throw;
}

std::string SqliteReadModel::translated(std::string_view sql) const {
  return sqlite::with_table_names(sql, prefix_);
}

std::string SqliteReadModel::refusal_of(const Action& action) {
  std::string refusal = refusal_of(action.code, action.object);
  // An index or trigger is created on the second named table, which must also be ours.
  const bool on_table = action.code == SQLITE_CREATE_INDEX || action.code == SQLITE_CREATE_TRIGGER;
  return refusal.empty() && on_table ? refusal_of(action.code, action.second) : refusal;
}

std::string SqliteReadModel::refusal_of(int action, std::string_view object) const {
  const bool is_ours = object.starts_with(prefix_);
  const bool is_sqlites = object.starts_with("sqlite_");
  const bool may_make = creating_ && (is_ours || is_sqlites);
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
      return {};
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
      if (is_ours || may_make) return {};
      if (is_sqlites) return "tables are made in `create` only, and dropped with their projector";
      return "it writes '" + std::string{object} +
             "'; a projector writes only tables of its own, named in braces";
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_VTABLE:
      if (may_make) return {};
      if (!creating_) return "tables are made in `create` only";
      return "name what is made in braces, as in CREATE TABLE {" + std::string{object} + "}";
    case SQLITE_REINDEX:
      if (creating_) return {};
      [[fallthrough]];
    default:
      return "a projector only reads, and changes the rows of its own tables; its transaction is "
             "begun and ended for it";
  }
}

}  // namespace stela::projections

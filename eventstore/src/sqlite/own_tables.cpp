#include "sqlite/own_tables.hpp"

#include "database/reserved_names.hpp"

#include <stela/framework/error.hpp>

namespace stela::sqlite {
namespace {

/// Why the name is refused; empty unless it belongs to Stela or one of its tables.
std::string refusal_of_name(std::string_view name, std::string_view doing) {
  if (database::is_read_model_table(name)) {
    return "it " + std::string{doing} + " '" + std::string{name} +
           "', a table of a read model, which its projector writes";
  }
  if (!database::is_stela_table(name)) return {};
  return "it " + std::string{doing} + " '" + std::string{name} +
         "', and tables of that name are Stela's";
}

}  // namespace

std::string OwnTables::refusal_of(const Action& action) {
  switch (action.code) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return {};
    case SQLITE_FUNCTION:
      // SQLite carries out ALTER TABLE … RENAME TO in this way, which doesn't show the new name.
      if (action.second == "sqlite_rename_table") return "tables aren't renamed here";
      return {};
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
      return refusal_of_name(action.object, "writes");
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_CREATE_VTABLE:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_DROP_VTABLE:
    case SQLITE_ALTER_TABLE:
    case SQLITE_REINDEX: {
      std::string refusal = refusal_of_name(action.object, "makes, alters or drops");
      return refusal.empty() ? refusal_of_name(action.second, "changes") : refusal;
    }
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
      return "the transaction is begun and ended for it; what may fail alone goes into `transact` "
             "on the transaction";
    case SQLITE_PRAGMA:
      return "a PRAGMA isn't run in a transaction of the store";
    default:
      return "in a transaction of the store, SQL reads, writes rows, and makes, alters and drops "
             "tables, indexes and triggers";
  }
}

void OwnTables::check(sqlite3_stmt* statement) const {
  const int count = sqlite3_bind_parameter_count(statement);
  for (int at = 1; at <= count; ++at) {
    const char* const name = sqlite3_bind_parameter_name(statement, at);
    const std::string wanted = "?" + std::to_string(at);
    if (name != nullptr && name == wanted) continue;
    throw UsageError{std::string{"\""} + sqlite3_sql(statement) + "\" has no parameter " + wanted +
                     "; parameters are written ?1, ?2 …, and none is left out"};
  }
}

}  // namespace stela::sqlite

// Write access to the tables of a projector.
#pragma once

#include <stela/eventstore/sql.hpp>
#include <stela/projections/export.hpp>

#include <string>
#include <string_view>

namespace stela {

/// SQL on the tables of one projector, inside the transaction that moves its checkpoint. Write the
/// name of a table, index or trigger as {name}, so that several builds can exist beside each other.
/// Readers from outside find each table as a view with the plain name.
///
/// A statement may read any table. It may write only the projector's own tables, and can't begin or
/// end a transaction. UniquenessViolated if a UNIQUE constraint refuses a row, ConstraintViolated
/// for another constraint, UsageError for wrong SQL, and for a table with a constraint that is
/// INITIALLY DEFERRED. Threads: the one that projects.
class STELA_PROJECTIONS_EXPORT ReadModel : public SqlStatements {
 public:
  /// The name of the table {name} in the database. If you keep the model elsewhere, it can serve
  /// there as a name that differs from build to build.
  virtual std::string table(std::string_view name) const = 0;
};

}  // namespace stela

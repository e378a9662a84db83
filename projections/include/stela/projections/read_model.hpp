// The tables of a projector, as it writes them.
#pragma once

#include <stela/eventstore/sql.hpp>
#include <stela/projections/export.hpp>

#include <string>
#include <string_view>

namespace stela {

/// SQL on the tables of one projector, inside the transaction that moves its checkpoint. A table,
/// index or trigger of its own is written {name}, so that another build of it can stand beside;
/// whoever reads the model from outside finds each table as a view of the plain name.
///
/// Every statement may read anything and write only tables of its own; it can't begin or end a
/// transaction. UniquenessViolated if a UNIQUE constraint refuses a row, ConstraintViolated if
/// another does, UsageError for wrong SQL.
/// Threads: the one that projects.
class STELA_PROJECTIONS_EXPORT ReadModel : public SqlStatements {
 public:
  /// How {name} is called in the database: for those who keep their model elsewhere, and want a
  /// name that differs from build to build too.
  virtual std::string table(std::string_view name) const = 0;
};

}  // namespace stela

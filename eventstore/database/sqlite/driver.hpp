// SQLite's own interface, for the SQLite code of other modules.
#pragma once

#include "database/database.hpp"
#include "database/sqlite/connection.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/detail/function_ref.hpp>

namespace stela::sqlite {

class STELA_EVENTSTORE_EXPORT Driver {
 public:
  virtual ~Driver() = default;

  /// The writing connection; it belongs to the leader of the open transaction.
  virtual Connection& writing() noexcept = 0;
  /// Runs `work` while that connection is unused, however long that takes. UsageError in a forked
  /// child.
  virtual void tidy(FunctionRef<void()> work) = 0;
};

/// UsageError if `database` isn't SQLite's.
STELA_EVENTSTORE_EXPORT Driver& driver_of(database::Database& database);

}  // namespace stela::sqlite

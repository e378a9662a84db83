// What only SQLite has: for the folders of other modules that are written for it.
#pragma once

#include "database/database.hpp"
#include "database/sqlite/connection.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/detail/function_ref.hpp>

namespace stela::sqlite {

class STELA_EVENTSTORE_EXPORT Driver {
 public:
  virtual ~Driver() = default;

  /// The connection that writes; it belongs to whoever leads the transaction that is open.
  virtual Connection& writing() noexcept = 0;
  /// Runs `work` while nobody uses that connection, however long that takes to come. UsageError in
  /// a forked child.
  virtual void tidy(FunctionRef<void()> work) = 0;
};

/// UsageError if `database` isn't SQLite's.
STELA_EVENTSTORE_EXPORT Driver& driver_of(database::Database& database);

}  // namespace stela::sqlite

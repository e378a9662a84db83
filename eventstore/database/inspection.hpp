// How a check reads the database, and reports problems.
#pragma once

#include "database/database.hpp"
#include "database/migration.hpp"

#include <stela/eventstore/verify.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stela::database {

/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Inspection {
 public:
  virtual ~Inspection() = default;

  virtual Database& database() noexcept = 0;

  /// Runs `work`, for a page of rows, in a read transaction of its own. Unreadable data is reported
  /// as a problem, and returns false. Ends the check if the caller asked to stop.
  virtual bool read(Database::Work work) = 0;

  /// The report reaches the caller after the current page.
  virtual void report(std::string where, std::string what, std::string advice) = 0;
  /// With the standard advice about a damaged file.
  virtual void report(std::string where, std::string what) = 0;
  /// Called between pages.
  virtual void progress(std::int64_t done, std::int64_t total) = 0;

  /// Reports differences from the tables, indexes and triggers of these migrations, and from their
  /// ledger entries. The last migrations may be missing: the database has yet to run them.
  /// `on_postgres`: the migrations for PostgreSQL.
  virtual void check_schema(std::string_view module, std::span<const Migration> migrations,
                            std::span<const Migration> on_postgres) = 0;
};

}  // namespace stela::database

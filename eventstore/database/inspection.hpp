// What a check can ask of the database that it looks at, and how it says what it found.
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

  /// Runs `work`, for a page of rows, in a read transaction of its own. What can't be read is a
  /// problem and false. It ends the check if the caller asked to stop.
  virtual bool read(Database::Work work) = 0;

  /// The caller hears of it when the page that is being read is over.
  virtual void report(std::string where, std::string what, std::string advice) = 0;
  /// The advice is that on a damaged file.
  virtual void report(std::string where, std::string what) = 0;
  /// Between pages.
  virtual void progress(std::int64_t done, std::int64_t total) = 0;

  /// Reports what differs from the tables, indexes and triggers that these migrations make, and
  /// from how the ledger notes them. The last of them may be missing: the database waits for them.
  /// `on_postgres`: those of the tables on PostgreSQL.
  virtual void check_schema(std::string_view module, std::span<const Migration> migrations,
                            std::span<const Migration> on_postgres) = 0;
};

}  // namespace stela::database

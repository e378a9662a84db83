// Verification of a database: every event exists, is as it was stored, and matches the tables that
// depend on it.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/progress.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

namespace database {
class Inspection;
}

/// Something that is wrong with a database.
struct Problem {
  /// The name of the check that found the problem: "events".
  std::string_view check;
  std::string where;
  std::string what;
  /// What to do about it.
  std::string advice;
};

/// "event 17: it doesn't match its checksum; restore a backup".
STELA_EVENTSTORE_EXPORT std::string to_string(const Problem& problem);

/// One check of a verification. A module passes the checks of its own tables to
/// `StoreOperations::verify`, which always runs those of the event store. The private header
/// database/inspection.hpp describes what a check can ask.
class STELA_EVENTSTORE_EXPORT IntegrityCheck {
 public:
  virtual ~IntegrityCheck() = default;
  /// A fixed, searchable name. It appears in problems and progress.
  virtual std::string_view name() const noexcept = 0;
  virtual void run(database::Inspection& inspection) = 0;
};

struct VerifyOptions {
  /// Runs SQLite's integrity_check instead of its quick_check. It also compares every index with
  /// its table, which takes several times as long. Stela compares its own indexes in any case.
  bool thorough = false;
  /// The checks of other modules.
  std::span<IntegrityCheck* const> checks = {};
  /// A check ends after this many problems. The other checks still run.
  std::int64_t max_problems = 100;
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

/// A table of the application in a shared file that SQLite can't check here. For example, one of
/// its indexes or constraints uses a function or collation that only the application has. Stela's
/// own tables need none.
struct UncheckedTable {
  std::string table;
  /// "unknown function: norm()".
  std::string why;
};

struct VerifyResult {
  /// How many events were checked.
  std::int64_t events = 0;
  std::int64_t problems = 0;
  /// False if the verification was stopped, or a check ended after too many problems.
  bool finished = true;
  /// Tables that SQLite's own check skipped, wholly or in part. They aren't problems: all other
  /// data was checked and is sound.
  std::vector<UncheckedTable> unchecked = {};

  bool is_sound() const noexcept { return finished && problems == 0; }
};

}  // namespace stela

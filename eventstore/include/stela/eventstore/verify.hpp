// Whether a database is whole: every event there, each as it was stored, and all that hangs on
// them.
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
  /// The name of the check that found it: "events".
  std::string_view check;
  std::string where;
  std::string what;
  /// What to do about it.
  std::string advice;
};

/// "event 17: it doesn't match its checksum; restore a backup".
STELA_EVENTSTORE_EXPORT std::string to_string(const Problem& problem);

/// One thing that is looked at. A module hands `StoreOperations::verify` the checks of its own
/// tables; those of the event store are always made. A private header, database/inspection.hpp,
/// says what it can ask.
class STELA_EVENTSTORE_EXPORT IntegrityCheck {
 public:
  virtual ~IntegrityCheck() = default;
  /// Fixed and searchable, as it stands in problems and progress.
  virtual std::string_view name() const noexcept = 0;
  virtual void run(database::Inspection& inspection) = 0;
};

struct VerifyOptions {
  /// SQLite's integrity_check in place of its quick_check: also compares every index with its
  /// table, which takes several times as long. Stela compares its own indexes in any case.
  bool thorough = false;
  /// The checks of other modules.
  std::span<IntegrityCheck* const> checks = {};
  /// A check that has found this many problems is ended; the others still run.
  std::int64_t max_problems = 100;
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

/// A table of an application's own, in a file that it shares, which SQLite can't check here: an
/// index or a constraint of it uses a function or collation that only the application has, say.
/// Stela's own tables need none.
struct UncheckedTable {
  std::string table;
  /// "unknown function: norm()".
  std::string why;
};

struct VerifyResult {
  /// How many events were looked at.
  std::int64_t events = 0;
  std::int64_t problems = 0;
  /// False if it was stopped, or a check found too much to go on.
  bool finished = true;
  /// Of these tables SQLite's own check is missing, wholly or in part. They aren't problems: what
  /// could be checked is sound without them.
  std::vector<UncheckedTable> unchecked = {};

  bool is_sound() const noexcept { return finished && problems == 0; }
};

}  // namespace stela

// Event histories as text: one JSON object per line, the same for every store. docs/schema.md
// describes the format.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/framework/detail/function_ref.hpp>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

namespace stela {

namespace database {
class Connection;
class Database;
}  // namespace database

/// A module's state beside the events, as rows that move with a store. A module passes its own to
/// `export_store` and `import_store`. The private headers in database/ describe their parameters.
class STELA_EVENTSTORE_EXPORT StateTransfer {
 public:
  using Row = FunctionRef<void(std::string_view table, std::string_view json)>;

  virtual ~StateTransfer() = default;
  /// The common prefix of its tables' names: "outbox_".
  virtual std::string_view prefix() const noexcept = 0;
  /// Passes each row to `row`, as a JSON object. All rows come from one moment.
  virtual void save(database::Connection& connection, Row row) = 0;
  /// Creates the tables, before the transaction that loads the rows. UsageError if the store has
  /// such state already.
  virtual void prepare(database::Database& database) = 0;
  /// Stores rows of one table, a JSON array of saved rows.
  virtual void load(database::Connection& connection, std::string_view table,
                    std::string_view rows) = 0;
  /// Called after the last row, in the same transaction.
  virtual void finish(database::Connection& connection) = 0;
};

struct TransferOptions {
  /// Counts events. Called between batches.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
  /// The state of other modules, for `export_store` and `import_store`.
  std::span<StateTransfer* const> states = {};
};

struct ExportResult {
  std::int64_t events = 0;
  /// False if the export was stopped.
  bool finished = true;
};

/// A range of events that can't be read.
struct UnreadableEvents {
  GlobalSequence first = {};
  GlobalSequence last = {};
  /// "it doesn't match its checksum", "it's missing", or SQLite's own message.
  std::string why = {};
};

struct SalvageOptions {
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  /// Counts events. Called from time to time.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct SalvageResult {
  /// How many events were written, and how many are unreadable.
  std::int64_t events = 0;
  std::int64_t lost = 0;
  /// False if it was stopped.
  bool finished = true;
};

struct ImportResult {
  /// How many append ids and state rows the store has from the import.
  std::int64_t append_ids = 0;
  std::int64_t rows = 0;
  /// How many events were new, and how many existed already.
  std::int64_t imported = 0;
  std::int64_t skipped = 0;
  /// The last event of the store after the import.
  GlobalSequence last;
  /// False if the import was stopped.
  bool finished = true;
};

/// Writes a header line, then a line for each event that `which` selects, up to the store's last
/// event at the time of the call. The same events always make the same bytes. Only events are
/// exported: no snapshots, append ids, participants or their tables. CorruptEvent at the first
/// event that differs from what was stored. StoreFailed if `out` can't be written. UsageError if a
/// range in `which` is reversed. Threads: any number at once, alongside writers.
STELA_EVENTSTORE_EXPORT ExportResult export_events(EventStore& store, std::ostream& out,
                                                   const AllQuery& which = {},
                                                   const TransferOptions& options = {});

/// Exports a damaged store. Writes the readable events as they were stored, and calls `report` for
/// the others, in order. After an unreadable page, it continues with the next event that it finds.
/// If the end of the store is unreadable, `report` may name more events than the store had. An
/// import accepts the lines before the first missing event. It also accepts the lines after the
/// last event of a restored backup. StoreFailed if `out` can't be written. Threads: any number at
/// once, alongside writers.
STELA_EVENTSTORE_EXPORT SalvageResult
salvage_events(Store& store, std::ostream& out, FunctionRef<void(const UnreadableEvents&)> report,
               const SalvageOptions& options = {});

/// Appends exported events unchanged: with their sequences, versions, ids and times. Each
/// transaction holds a batch of them. After an error, the events imported so far stay, and
/// importing the same lines again continues after them: existing events are compared and skipped.
/// Participants and listeners aren't called. UsageError, with the number of the line, if a line is
/// malformed, leaves a gap, or contradicts the store. UsageError also if the store has another
/// codec, or requires participants, because they would miss the events. Threads: beside any number
/// of other writers; an append by one of them is such a contradiction.
STELA_EVENTSTORE_EXPORT ImportResult import_events(Store& store, std::istream& in,
                                                   const TransferOptions& options = {});

/// Exports everything that another database needs to replace this one: the store's id, every event,
/// the append ids, and the states. `import_store` accepts it on any engine. Snapshots are taken
/// again, and read models are rebuilt. UsageError if an event was appended meanwhile, or if a state
/// is in use: stop all writers and workers first. Don't start them on this database again: two
/// databases with one id would publish different events under the same numbers.
STELA_EVENTSTORE_EXPORT ExportResult export_store(Store& store, std::ostream& out,
                                                  const TransferOptions& options = {});

/// Imports the output of `export_store` or `export_events`. The store must be empty, or hold the
/// beginning of that output: after an error, the same import continues. The store takes over the
/// exported store's id; open it again afterwards. The states are loaded together, after all of them
/// were read: UsageError if the end of the export is missing. Other errors as for `import_events`.
STELA_EVENTSTORE_EXPORT ImportResult import_store(Store& store, std::istream& in,
                                                  const TransferOptions& options = {});

}  // namespace stela

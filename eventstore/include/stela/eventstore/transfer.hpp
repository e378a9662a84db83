// Histories as text: one JSON object a line, the same for every store. docs/schema.md has the
// format.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/progress.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/framework/function_ref.hpp>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <stop_token>
#include <string>

namespace stela {

struct TransferOptions {
  /// In events. Called between batches.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct ExportResult {
  std::int64_t events = 0;
  /// False if it was stopped.
  bool finished = true;
};

/// Events that can't be read, one behind the other.
struct UnreadableEvents {
  GlobalSequence first = {};
  GlobalSequence last = {};
  /// "it doesn't match its checksum", "it's missing", or what SQLite said.
  std::string why = {};
};

struct SalvageOptions {
  GlobalSequence from{1};
  GlobalSequence to = GlobalSequence::max();
  /// In events. Called now and then.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

struct SalvageResult {
  /// How many were written, and how many can't be read.
  std::int64_t events = 0;
  std::int64_t lost = 0;
  /// False if it was stopped.
  bool finished = true;
};

struct ImportResult {
  /// How many events were new, and how many were there already.
  std::int64_t imported = 0;
  std::int64_t skipped = 0;
  /// The store's last event now.
  GlobalSequence last;
  /// False if it was stopped.
  bool finished = true;
};

/// Writes a header line and a line for each event that `which` selects, up to what is the store's
/// last one now. The same events always make the same bytes. What isn't an event stays behind:
/// snapshots, append ids, participants and their tables. CorruptEvent at the first event that isn't
/// what was stored; StoreFailed if `out` can't be written. UsageError if `which` is backward.
/// Threads: any number at once, beside writers.
STELA_EVENTSTORE_EXPORT ExportResult export_events(EventStore& store, std::ostream& out,
                                                   const AllQuery& which = {},
                                                   const TransferOptions& options = {});

/// As an export, of a damaged store: writes every event that can still be read as it was stored,
/// and tells `report` of those that can't, in order. If the end of the store can't be read either,
/// more may be told of than there were. An import takes the lines up to the first that is missing;
/// those behind the last event of a restored backup it takes too. StoreFailed if `out` can't be
/// written. Threads: any number at once, beside writers.
STELA_EVENTSTORE_EXPORT SalvageResult
salvage_events(Store& store, std::ostream& out, FunctionRef<void(const UnreadableEvents&)> report,
               const SalvageOptions& options = {});

/// Appends the events of an export as they were: with their sequences, versions, ids and times.
/// They go in order, a batch of them in each transaction, so what was imported before an error
/// stays, and importing the same lines again goes on behind it: lines that are there already are
/// compared and skipped. Participants and listeners hear nothing of it.
/// UsageError, naming the line, at one that is malformed, leaves a gap, or contradicts what is
/// there; also if the store has another codec, or requires participants, who would miss the events.
/// Threads: any number of other writers; an append by one of them is such a contradiction.
STELA_EVENTSTORE_EXPORT ImportResult import_events(Store& store, std::istream& in,
                                                   const TransferOptions& options = {});

}  // namespace stela

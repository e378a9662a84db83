// Records for operators: changes of state, acknowledged findings, and a history.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/store.hpp>
#include <stela/framework/clock.hpp>
#include <stela/framework/query.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// Work that stopped, resumed or was taken over, or a change by an operator.
struct JournalEntry {
  std::int64_t number = 0;
  Timestamp at = {};
  /// "outbox", "projections", "timers", "inbox", "findings" or "console".
  std::string part = {};
  /// A partition, worker, projector or consumer.
  std::string subject = {};
  std::string what = {};
  /// The operator; empty for a change that nobody ordered.
  std::string who = {};
  std::string detail = {};
};

struct JournalQuery {
  /// Only entries before this one: for the next page.
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  int limit = 100;
  /// Only entries after this one.
  std::int64_t after = 0;
  Direction direction = Direction::backward;
};

/// A finding that an operator knows of. It counts again once it gets worse or the time is up.
struct Acknowledgement {
  /// The code and subject of the finding.
  std::string code = {};
  std::string subject = {};
  /// The severity and amount at the time: the number of parked messages, for example.
  std::string severity = {};
  std::int64_t amount = 0;
  /// The operator. If empty when noted: the user and host of the process.
  std::string who = {};
  std::string why = {};
  Timestamp at = {};
  Timestamp until = {};
};

/// A value at the beginning of a minute.
struct HistoryPoint {
  Timestamp at = {};
  std::int64_t value = 0;
};

/// Values of each minute of the last 7 days, and of each hour of the last 90 days. A missing point
/// means that nothing was measured. Series named `…_total` only ever increase.
struct HistorySeries {
  std::string name = {};
  std::vector<HistoryPoint> points = {};
};

/// Reads the records of workers, runners and consumers, of the last 90 days. Threads: any number at
/// once. `store` must outlive it. An older database that was opened read-only has no entries.
class STELA_EVENTSTORE_EXPORT Journal {
 public:
  explicit Journal(Store& store) : store_{store} {}

  /// The newest first, unless the query says otherwise.
  std::vector<JournalEntry> entries(const JournalQuery& query = {});

  /// Records, at the present time, an operator's decision that was made elsewhere. UsageError
  /// without an operator, a part or what was done.
  void note(const JournalEntry& entry);
  /// Replaces an earlier acknowledgement of the same finding. Writes an entry, as `withdraw` does.
  /// UsageError without a reason, or with an end in the past.
  void acknowledge(const Acknowledgement& known);
  /// False if there is none.
  bool withdraw(std::string_view code, std::string_view subject);
  /// Acknowledgements whose time isn't up.
  std::vector<Acknowledgement> acknowledgements();

  /// All series, ordered by name, with their points between two times.
  std::vector<HistorySeries> history(Timestamp from, Timestamp to);

 private:
  Store& store_;
};

}  // namespace stela

// What operators see of the past: changes of state, findings that are known, and a history.
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

/// Something stopped, went on, was taken over, or an operator changed it.
struct JournalEntry {
  std::int64_t number = 0;
  Timestamp at = {};
  /// "outbox", "projections", "timers", "inbox", "findings" or "console".
  std::string part = {};
  /// A partition, worker, projector or consumer.
  std::string subject = {};
  std::string what = {};
  /// The operator; empty if nobody asked for it.
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

/// An operator knows of a finding. It counts again once it is worse than it was, or its time is up.
struct Acknowledgement {
  /// The code and subject of the finding.
  std::string code = {};
  std::string subject = {};
  /// How bad it was, and how much: parked messages, for example.
  std::string severity = {};
  std::int64_t amount = 0;
  /// The operator. Empty, when it is said: the user and host of the process.
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

/// Values of each minute of the last 7 days, and of each hour of the last 90. Where there is none,
/// nobody looked. Those of `…_total` are counted up for ever.
struct HistorySeries {
  std::string name = {};
  std::vector<HistoryPoint> points = {};
};

/// Reads what workers, runners and consumers noted, of the last 90 days. Threads: any number at
/// once. `store` must outlive it. An older database that was opened to be read only has no entry.
class STELA_EVENTSTORE_EXPORT Journal {
 public:
  explicit Journal(Store& store) : store_{store} {}

  /// The newest first, unless the query says otherwise.
  std::vector<JournalEntry> entries(const JournalQuery& query = {});

  /// What an operator decided elsewhere, now. UsageError without an operator, a part or what it
  /// was.
  void note(const JournalEntry& entry);
  /// Replaces an earlier one of the same finding. It is an entry, too, and so is its end by
  /// `withdraw`. UsageError without a reason, or with an end that
  /// is over.
  void acknowledge(const Acknowledgement& known);
  /// False if there is none.
  bool withdraw(std::string_view code, std::string_view subject);
  /// Those whose time isn't up.
  std::vector<Acknowledgement> acknowledgements();

  /// All series, by name, with their points between two times.
  std::vector<HistorySeries> history(Timestamp from, Timestamp to);

 private:
  Store& store_;
};

}  // namespace stela

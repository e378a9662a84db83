// A problem, in one form for every command that reports it.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/outbox/states.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

/// In ascending order, as in monitoring systems.
enum class Severity : std::uint8_t { fine, warning, critical };

/// The kinds of problems. Their words never change; sentences may.
enum class Code : std::uint8_t {
  database_down,
  database_standby,
  database_transaction,
  database_locked,
  database_unanswered,
  standby_late,
  outbox_unattended,
  outbox_cut_off,
  outbox_late,
  outbox_parked,
  worker_cut_off,
  worker_misconfigured,
  worker_silent,
  worker_ended,
  partition_poison,
  partition_foreign_writer,
  partition_broker_lost,
  partition_store_went_back,
  partition_unreadable,
  partition_damaged,
  partition_missing,
  partition_unrecognized,
  partition_backing_off,
  partition_unanswered,
  partition_lease_expired,
  partition_uncompared,
  broker_unreached,
  stream_unfit,
  stream_shorter,
  stream_purged,
  stream_nearly_full,
  projector_stopped,
  projector_unknown_version,
  projector_failing,
  projector_unattended,
  projector_late,
  projector_parked,
  timers_held,
  process_overdue,
  process_parked,
  process_unknown_timers,
  consumer_overdue,
  consumer_unattended,
  consumer_failing,
  consumer_unknown_version,
  consumer_waiting,
  consumer_standing,
  consumer_paused,
  consumer_parked,
  consumer_gaps,
  // About one message, or about a subject without problems.
  message_parked,
  message_parked_behind,
  message_pending,
  message_discarded,
  message_published,
  event_local,
  well,
};

struct CodeFacts {
  Code code;
  /// "partition_broker_lost".
  std::string_view word;
  /// The severity, unless a limit decides otherwise.
  Severity severity;
  /// For the reference.
  std::string_view meaning;
};
/// In the order of the enumeration.
std::span<const CodeFacts> all_codes() noexcept;
const CodeFacts& facts_of(Code code) noexcept;
std::string_view word_of(Severity severity) noexcept;

struct Finding {
  Code code = Code::database_down;
  Severity severity = Severity::fine;
  /// "p03", or the name of a worker, projector, process or consumer. Empty: the outbox or the
  /// database.
  std::string subject = {};
  /// When it began, if the database has it.
  std::optional<Timestamp> since = {};
  /// When the last item that it counts was added, if the database has it.
  std::optional<Timestamp> latest = {};
  /// The number of items that it counts; 0 if it counts nothing.
  std::int64_t amount = 0;
  /// A few words, the same for all subjects with the same trouble: "stopped: broker_lost".
  std::string trouble = {};
  /// The kind of failure that messages met at the broker, if known.
  std::optional<FailureClass> failure = {};
  /// The whole problem, naming the subject. Without control characters.
  std::string sentence = {};
  /// The command or the action that ends it.
  std::string remedy = {};
  /// The index of the finding that explains this one.
  std::optional<std::size_t> caused_by = {};
  /// The operator who acknowledged it, until when, and why. It isn't worse than it was then, and
  /// its severity is `fine`.
  std::string known = {};
};

/// Critical if at least one is.
Severity worst_of(std::span<const Finding> findings) noexcept;

}  // namespace stela::tool

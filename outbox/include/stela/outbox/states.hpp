// What messages, partitions and workers can be in, and why.
#pragma once

#include <stela/outbox/export.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace stela {

/// Where a message is. A publishable event is in one of: waiting (the first three), parked,
/// discarded, published.
enum class MessageState : std::uint8_t {
  /// It waits to be published.
  pending,
  /// A worker has it.
  in_flight,
  /// It was tried without success, and is to be tried again.
  retrying,
  /// It can't be published, or comes after one of its stream that can't. It waits for an operator.
  parked,
  /// An operator, or `on_poison = skip`, gave it up.
  discarded,
  published,
};

/// Why a message was parked or discarded.
enum class SetAsideReason : std::uint8_t {
  /// Parked: the broker refused it.
  refused,
  /// Parked: it was tried as often as it may be.
  attempts,
  /// Parked: it comes after a parked message of its stream.
  behind,
  /// Discarded by an operator.
  discarded,
  /// Discarded by `on_poison = skip`.
  skipped,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// Why nobody publishes a partition until an operator does something.
enum class StopReason : std::uint8_t {
  /// A message can't be published, and `on_poison` is `halt`.
  poison,
  /// Others publish to its stream or subject.
  foreign_writer,
  /// The broker has less than it acknowledged. It may resume by itself.
  broker_lost,
  /// The broker has another history: the store is an older copy, say.
  store_went_back,
  /// The broker has messages that make no sense one after the other.
  unreadable,
  /// Its row in the database can't be right.
  damaged,
  /// It doesn't exist, and messages wait in it. Its word is "unknown".
  missing,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// What is known of a worker's process.
enum class WorkerProcess : std::uint8_t {
  runs,
  ended,
  /// It can't be seen from here.
  unknown,
};

// The words that stand in the database and in the tool's output.
STELA_OUTBOX_EXPORT std::string_view to_string(MessageState state) noexcept;
STELA_OUTBOX_EXPORT std::string_view to_string(SetAsideReason reason) noexcept;
STELA_OUTBOX_EXPORT std::string_view to_string(StopReason reason) noexcept;

/// Nothing if there is no such state.
STELA_OUTBOX_EXPORT std::optional<MessageState> parse_message_state(std::string_view text) noexcept;
/// `unrecognized` for any other text.
STELA_OUTBOX_EXPORT SetAsideReason parse_set_aside_reason(std::string_view text) noexcept;
STELA_OUTBOX_EXPORT StopReason parse_stop_reason(std::string_view text) noexcept;

}  // namespace stela

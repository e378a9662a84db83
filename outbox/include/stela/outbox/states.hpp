// The states of messages, partitions and workers, and their reasons.
#pragma once

#include <stela/outbox/export.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stela {

/// Where a message is. A publishable event is either pending (the first three), parked, discarded
/// or published.
enum class MessageState : std::uint8_t {
  /// Not sent yet.
  pending,
  /// Sent, or about to be sent, by a worker.
  in_flight,
  /// Failed; tried again by itself, or once an operator resumes its stopped partition.
  retrying,
  /// It can't be published, or follows a parked message of its stream. It waits for an operator.
  parked,
  /// Given up by an operator or by `on_poison = skip`.
  discarded,
  published,
};

/// Why a message was parked or discarded.
enum class SetAsideReason : std::uint8_t {
  /// Parked: the broker refused it.
  refused,
  /// Parked: all attempts failed.
  attempts,
  /// Parked: it follows a parked message of its stream.
  behind,
  /// Discarded by an operator.
  discarded,
  /// Discarded by `on_poison = skip`.
  skipped,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// The kind of failure that keeps messages from being published, which points to the remedy.
enum class FailureClass : std::uint8_t {
  /// The broker's stream has reached a limit of its own.
  stream_full,
  stream_missing,
  /// The stream accepts no messages, and can't be changed.
  stream_sealed,
  /// Settings of the stream or of the server forbid messages, or would lose them.
  stream_settings,
  /// No stream takes the subject, or another one does.
  subject,
  /// The broker's user lacks a permission.
  permission,
  /// The message is larger than the broker takes.
  too_large,
  /// The broker didn't answer in time.
  no_answer,
  /// The broker didn't accept the message, and the message itself may be the reason.
  rejected,
  /// Anything else, or a class from a newer version of Stela.
  other,
};

/// Why a partition publishes nothing until an operator acts.
enum class StopReason : std::uint8_t {
  /// A message can't be published, and `on_poison` is `stop`.
  poison,
  /// Another program publishes to its stream or subject.
  foreign_writer,
  /// The broker has less than it acknowledged. The partition may resume by itself.
  broker_lost,
  /// The broker has another history; the store may be an older copy.
  store_went_back,
  /// The broker's messages contradict each other.
  unreadable,
  /// The partition's row in the database can't be right.
  damaged,
  /// The partition doesn't exist, but has pending messages. The stored word is "unknown".
  missing,
  /// Stored by a newer version of Stela.
  unrecognized,
};

/// What is known of a worker's process.
enum class WorkerProcess : std::uint8_t {
  runs,
  ended,
  /// It can't be seen from this process.
  unknown,
};

enum class BrokerState : std::uint8_t {
  /// Not tried yet, or being tried.
  connecting,
  connected,
  /// It can't be reached or doesn't answer.
  down,
  /// It answers, but something must be changed: a stream is missing, or a permission.
  misconfigured,
};

/// How a worker or a consumer sees its broker.
struct BrokerStatus {
  BrokerState state = BrokerState::connecting;
  /// Why it is down or misconfigured, for people.
  std::string detail = {};

  bool is_connected() const noexcept { return state == BrokerState::connected; }
  bool operator==(const BrokerStatus&) const = default;
};

// The words in the database and in the tool's output.
STELA_OUTBOX_EXPORT std::string_view to_string(MessageState state) noexcept;
STELA_OUTBOX_EXPORT std::string_view to_string(SetAsideReason reason) noexcept;
STELA_OUTBOX_EXPORT std::string_view to_string(FailureClass failure) noexcept;
STELA_OUTBOX_EXPORT std::string_view to_string(StopReason reason) noexcept;
STELA_OUTBOX_EXPORT std::string_view to_string(BrokerState state) noexcept;
/// "connected", "connecting", "down: …" or "misconfigured: …".
STELA_OUTBOX_EXPORT std::string to_string(const BrokerStatus& status);

/// Empty if there is no such state.
STELA_OUTBOX_EXPORT std::optional<MessageState> parse_message_state(std::string_view text) noexcept;
/// `unrecognized` for any other text.
STELA_OUTBOX_EXPORT SetAsideReason parse_set_aside_reason(std::string_view text) noexcept;
/// `other` for any other text.
STELA_OUTBOX_EXPORT FailureClass parse_failure_class(std::string_view text) noexcept;
/// `unrecognized` for any other text.
STELA_OUTBOX_EXPORT StopReason parse_stop_reason(std::string_view text) noexcept;
/// Parses a text of `to_string`. Any other text becomes the detail of `down`.
STELA_OUTBOX_EXPORT BrokerStatus parse_broker_status(std::string_view text);

}  // namespace stela

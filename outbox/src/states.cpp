#include <stela/outbox/states.hpp>

#include "database/stored_enum.hpp"

namespace stela {

std::string_view to_string(MessageState state) noexcept {
  switch (state) {
    case MessageState::pending:
      return "pending";
    case MessageState::in_flight:
      return "in_flight";
    case MessageState::retrying:
      return "retrying";
    case MessageState::parked:
      return "parked";
    case MessageState::discarded:
      return "discarded";
    case MessageState::published:
      return "published";
  }
  return "unknown";
}

std::string_view to_string(SetAsideReason reason) noexcept {
  switch (reason) {
    case SetAsideReason::refused:
      return "refused";
    case SetAsideReason::attempts:
      return "attempts";
    case SetAsideReason::behind:
      return "behind";
    case SetAsideReason::discarded:
      return "discarded";
    case SetAsideReason::skipped:
      return "skipped";
    case SetAsideReason::unrecognized:
      break;
  }
  return "unrecognized";
}

std::string_view to_string(FailureClass failure) noexcept {
  switch (failure) {
    case FailureClass::stream_full:
      return "stream_full";
    case FailureClass::stream_missing:
      return "stream_missing";
    case FailureClass::stream_sealed:
      return "stream_sealed";
    case FailureClass::stream_settings:
      return "stream_settings";
    case FailureClass::subject:
      return "subject";
    case FailureClass::permission:
      return "permission";
    case FailureClass::too_large:
      return "too_large";
    case FailureClass::no_answer:
      return "no_answer";
    case FailureClass::rejected:
      return "rejected";
    case FailureClass::other:
      break;
  }
  return "other";
}

std::string_view to_string(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::poison:
      return "poison";
    case StopReason::foreign_writer:
      return "foreign_writer";
    case StopReason::broker_lost:
      return "broker_lost";
    case StopReason::store_went_back:
      return "store_went_back";
    case StopReason::unreadable:
      return "unreadable";
    case StopReason::damaged:
      return "damaged";
    case StopReason::missing:
      return "unknown";
    case StopReason::unrecognized:
      break;
  }
  return "unrecognized";
}

std::string_view to_string(BrokerState state) noexcept {
  switch (state) {
    case BrokerState::connecting:
      return "connecting";
    case BrokerState::connected:
      return "connected";
    case BrokerState::misconfigured:
      return "misconfigured";
    case BrokerState::down:
      break;
  }
  return "down";
}

std::string to_string(const BrokerStatus& status) {
  std::string text{to_string(status.state)};
  if (!status.detail.empty()) text.append(": ").append(status.detail);
  return text;
}

std::optional<MessageState> parse_message_state(std::string_view text) noexcept {
  for (const MessageState state :
       {MessageState::pending, MessageState::in_flight, MessageState::retrying,
        MessageState::parked, MessageState::discarded, MessageState::published}) {
    if (text == to_string(state)) return state;
  }
  return std::nullopt;
}

SetAsideReason parse_set_aside_reason(std::string_view text) noexcept {
  return database::parse_stored(
      {SetAsideReason::refused, SetAsideReason::attempts, SetAsideReason::behind,
       SetAsideReason::discarded, SetAsideReason::skipped},
      text);
}

FailureClass parse_failure_class(std::string_view text) noexcept {
  for (auto number = 0; number < static_cast<int>(FailureClass::other); ++number) {
    const auto failure = static_cast<FailureClass>(number);
    if (to_string(failure) == text) return failure;
  }
  return FailureClass::other;
}

StopReason parse_stop_reason(std::string_view text) noexcept {
  return database::parse_stored({StopReason::poison, StopReason::foreign_writer,
                                 StopReason::broker_lost, StopReason::store_went_back,
                                 StopReason::unreadable, StopReason::damaged, StopReason::missing},
                                text);
}

BrokerStatus parse_broker_status(std::string_view text) {
  for (const BrokerState state : {BrokerState::connecting, BrokerState::connected,
                                  BrokerState::down, BrokerState::misconfigured}) {
    const std::string_view word = to_string(state);
    if (!text.starts_with(word)) continue;
    const std::string_view rest = text.substr(word.size());
    if (rest.empty()) return {.state = state};
    if (rest.starts_with(": ")) return {.state = state, .detail = std::string{rest.substr(2)}};
  }
  return {.state = BrokerState::down, .detail = std::string{text}};
}

}  // namespace stela

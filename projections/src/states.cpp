#include <stela/projections/projections.hpp>
#include <stela/projections/states.hpp>

namespace stela {

std::string_view to_string(OnError on_error) noexcept {
  return on_error == OnError::park ? "park" : "stop";
}

std::string_view to_string(ProjectionKind kind) noexcept {
  switch (kind) {
    case ProjectionKind::async:
      return "async";
    case ProjectionKind::inline_:
      return "inline";
    case ProjectionKind::reaction:
      return "reaction";
    case ProjectionKind::unrecognized:
      break;
  }
  return "unrecognized";
}

std::string_view to_string(BuildState state) noexcept {
  switch (state) {
    case BuildState::building:
      return "building";
    case BuildState::living:
      return "living";
    case BuildState::retired:
      return "retired";
    case BuildState::scratch:
      return "scratch";
    case BuildState::unrecognized:
      break;
  }
  return "unrecognized";
}

std::string_view to_string(ParkedEventState state) noexcept {
  switch (state) {
    case ParkedEventState::parked:
      return "parked";
    case ParkedEventState::retry:
      return "retry";
    case ParkedEventState::skipped:
      return "skipped";
    case ParkedEventState::unrecognized:
      break;
  }
  return "unrecognized";
}

std::string_view to_string(TimerState state) noexcept {
  switch (state) {
    case TimerState::pending:
      return "pending";
    case TimerState::unknown:
      return "unknown";
    case TimerState::parked:
      return "parked";
    case TimerState::unrecognized:
      break;
  }
  return "unrecognized";
}

std::string_view to_string(HoldReason reason) noexcept {
  switch (reason) {
    case HoldReason::clock:
      return "clock";
    case HoldReason::restored:
      return "restored";
    case HoldReason::imported:
      return "imported";
    case HoldReason::by_operator:
      return "operator";
    case HoldReason::unrecognized:
      break;
  }
  return "unrecognized";
}

}  // namespace stela

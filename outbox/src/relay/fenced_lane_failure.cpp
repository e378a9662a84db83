// How a fenced lane handles a message that wasn't stored, and one that may kill its publisher.
#include "relay/fenced_lane.hpp"

#include <utility>

namespace stela::relay {
namespace {

/// "64 KiB", "1.3 MiB".
std::string size_in_words(std::int64_t bytes) {
  constexpr std::int64_t unit = 1024;
  if (bytes < unit) return std::to_string(bytes) + " bytes";
  const bool is_large = bytes >= unit * unit;
  const std::int64_t tenths = bytes * 10 / (is_large ? unit * unit : unit);
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += '.' + std::to_string(tenths % 10);
  return text + (is_large ? " MiB" : " KiB");
}

/// "its payload has 1.3 MiB, and max_payload of the server is 1 MiB". The broker's limit includes
/// headers.
std::string size_of(std::int64_t bytes, const SizeLimit& limit) {
  std::string text = "its payload has " + size_in_words(bytes);
  if (limit.bytes == 0) return text;
  if (bytes <= limit.bytes) text += " without its headers";
  return text + ", and " + limit.setting + " is " + size_in_words(limit.bytes);
}

}  // namespace

/// True if workers have died of sending this message so often that it is given up.
bool FencedLane::gave_up_killer(const PendingMessage& message) {
  if (!suspicion_.suspects(message) || message.attempts < core_.options.max_attempts) return false;
  give_up(message, ParkedMessage::Reason::attempts,
          {.message_attempts = message.attempts,
           .error = "workers died each time when they sent this message alone",
           .failure = FailureClass::other});
  return true;
}

/// Charges at the last moment, so that other causes of death aren't blamed on the message.
bool FencedLane::charge_suspect(const PendingMessage& message) {
  if (!suspicion_.suspects(message)) return true;
  const bool is_noted = note({.message = message,
                              .message_attempts = message.attempts + 1,
                              .error = "a worker died while it was publishing this message alone"});
  if (is_noted) suspicion_.charge();
  return is_noted;
}

/// A worker that survives sending the suspect withdraws the charge.
void FencedLane::acquit_survived() {
  // The suspect is sent alone: nothing else is in flight.
  const Link* const open = chain_.first_unanswered();
  if (open == nullptr || !suspicion_.is_charged(open->message)) return;
  // If the store fails now, the next pass tries again.
  const Trouble none{.message = open->message, .message_attempts = open->message.attempts};
  if (note(none)) suspicion_.close();
}

void FencedLane::on_failure(const Link& link, const Answer& answer) {
  if (answer.kind == Answer::Kind::unknown) core_.session_doubted = true;
  doubt_.announce();
  if (failure_ && failure_->link.position <= link.position) return;
  failure_ = Failure{.link = link, .answer = answer};
}

void FencedLane::explain(Failure& failure, const Answer& stream) {
  Answer& answer = failure.answer;
  if (answer.failure == FailureClass::stream_full && !stream.limit.empty()) {
    answer.detail += "; " + stream.limit;
  }
  if (answer.failure != FailureClass::too_large) return;
  const bool is_known = answer.size_limit.bytes > 0;
  const SizeLimit& limit = is_known ? answer.size_limit : stream.size_limit;
  answer.detail.insert(0, size_of(failure.link.bytes, limit) + ": ");
}

void FencedLane::act_on(const Failure& failure) {
  const PendingMessage& message = failure.link.message;
  const Answer& answer = failure.answer;
  Trouble trouble{
      .message_attempts = message.attempts + 1, .error = answer.detail, .failure = answer.failure};
  const auto report = [&] {
    core_.report(Incident::Kind::publish_failed, partition(), message.sequence, answer.detail);
  };
  if (answer.kind != Answer::Kind::stored_before) report();
  switch (answer.kind) {
    case Answer::Kind::refused:
      return give_up(message, ParkedMessage::Reason::refused, trouble);
    case Answer::Kind::rejected:
      suspicion_.close();
      if (trouble.message_attempts >= core_.options.max_attempts) {
        return give_up(message, ParkedMessage::Reason::attempts, trouble);
      }
      ++core_.counts.retried;
      trouble.message = message;
      return back_off(std::move(trouble));
    case Answer::Kind::misconfigured:
      if (!failure.has_waited) on_misfit(answer);
      return;
    case Answer::Kind::full:
      ++core_.counts.retried;
      break;
    default:
      // A restarted broker may have forgotten the id of its last message.
      chain_.follow_any();
      // Another writer was first, or the outcome was unknown: the read-back has settled it. After
      // two fruitless ones in a row, slow down.
      if (doubt_.count_fruitless() <= 1) return;
      if (answer.kind == Answer::Kind::stored_before) report();
  }
  if (!failure.has_waited) back_off(std::move(trouble));
}

void FencedLane::give_up(const PendingMessage& message, ParkedMessage::Reason reason,
                         const Trouble& trouble) {
  if (core_.options.on_poison == OnPoison::stop) {
    Trouble charged = trouble;
    charged.message = message;
    note(charged);
    return stop(StopReason::poison, "event " + std::to_string(message.sequence.value()) +
                                        " can't be published: " + trouble.error);
  }
  Advance advance;
  // A message that the broker already has can't be parked: only its redelivery is dropped.
  const bool skip = core_.options.on_poison == OnPoison::skip || message.is_republished;
  (skip ? advance.skipped : advance.parked)
      .push_back({message.sequence, message.redelivery, reason, trouble.message_attempts,
                  trouble.error, trouble.failure});
  this->advance(advance, false);
  after_refusal_ = 1;
}

}  // namespace stela::relay

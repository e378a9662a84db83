// How a fenced lane finds out where its partition stands at the broker, and what it then does about
// what went wrong.
#include "relay/fenced_lane.hpp"

#include <algorithm>
#include <limits>
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

/// "its payload has 1.3 MiB, and max_payload of the server is 1 MiB". Headers count, too.
std::string size_of(std::int64_t bytes, const SizeLimit& limit) {
  std::string text = "its payload has " + size_in_words(bytes);
  if (limit.bytes == 0) return text;
  if (bytes <= limit.bytes) text += " without its headers";
  return text + ", and " + limit.setting + " is " + size_in_words(limit.bytes);
}

}  // namespace

void FencedLane::doubt() {
  doubt_.begin();
  chain_.clear();
}

void FencedLane::ask() {
  if (core_.session == 0 || is_backing_off()) return;
  if (!is_fenced()) return resume({});
  if (!doubt_.may_ask(is_in_trouble())) return;
  const std::uint64_t from = std::min(chain_.position().broker_sequence,
                                      broker_end_.value_or(chain_.position().broker_sequence));
  try {
    core_.publisher.read_back(doubt_.ask(partition()), partition(),
                              std::max<std::uint64_t>(from, 1));
    core_.publisher.flush();
  } catch (const Error&) {
    core_.session_failed = true;
  }
}

void FencedLane::on_session() {
  if (is_owned() && doubt_.is_unasked()) ask();
}

void FencedLane::on_session_lost() {
  if (!is_owned() || !mark_stored()) return;
  doubt();
  if (is_looking()) end_look(Look::lost);
}

Verdict FencedLane::compare_with(const Answer& answer) const noexcept {
  return compare(chain_.position(), answer, core_.fence, core_.store_id);
}

void FencedLane::on_read_back(const Answer& answer) {
  if (is_looking()) return on_look(answer);
  if (answer.kind == Answer::Kind::misconfigured) {
    doubt();
    wait_with_failure();
    return on_misfit(answer.detail, answer.failure);
  }
  if (answer.kind != Answer::Kind::read_back) return miss(answer.detail, answer.failure);
  const bool ends_before = end_of(answer) < chain_.position().broker_sequence;
  if (ends_before && answer.has_more) {
    // It has the messages again that it had lost.
    broker_end_.reset();
    ask_again();
    return;
  }
  // What was marked since the adoption began is as good as what is marked without one.
  if (adopting_ && ends_before) adopted_ = adopting_ = false;
  if (adopted_) {
    if (adopt(answer)) resume(answer);
    return;
  }
  const Verdict verdict = compare_with(answer);
  if (const auto reason = verdict.stop_reason()) return on_contradiction(*reason, answer);
  broker_end_.reset();
  if (doubt_.end_loss()) recover();
  if (!accept(verdict.following, answer)) return;
  if (!answer.has_more) return resume(answer);
  // What is published after a part of it would only be refused.
  ask_again();
}

void FencedLane::on_look(const Answer& answer) {
  doubt();
  const bool has_answered = answer.kind == Answer::Kind::read_back;
  if (!has_answered || compare_with(answer).stop_reason()) return end_look(Look::lost);
  // Nobody can tell what is gone of one subject among others.
  const bool is_whole = core_.fence == Fence::stream && answer.holes == 0;
  end_look(is_whole ? Look::whole : Look::with_holes);
}

bool FencedLane::passes_what_waits(std::span<const FoundMessage> messages) {
  Cursor behind{.redelivery = std::numeric_limits<std::int64_t>::max()};
  for (const FoundMessage& found : messages) {
    if (found.redelivery > 0) continue;
    const auto next = core_.store.next(partition(), behind, {.messages = 1});
    if (next->messages.empty() || next->messages.front().sequence > found.sequence) continue;
    if (next->messages.front().sequence < found.sequence) return true;
    behind.sequence = found.sequence;
  }
  return false;
}

void FencedLane::on_contradiction(StopReason reason, const Answer& answer) {
  doubt();
  std::string what = describe(chain_.position(), answer, core_.fence);
  if (reason == StopReason::store_went_back) {
    what += "; another message stands where the partition's last one was";
  }
  if (reason != StopReason::broker_lost) return stop(reason, std::move(what));
  broker_end_ = end_of(answer);
  if (doubt_.is_lost_for_good()) {
    bool has_last = false;
    const bool is_asked = answer.found.empty() || guarded([&] {
                            const FoundMessage& last = answer.found.back();
                            const GlobalSequence sequences[] = {last.sequence};
                            has_last = is_ours(last, core_.store.ids_of(sequences).front());
                          });
    if (!is_asked) return;
    what += describe_loss(chain_.position(), answer, partition(), has_last);
    return stop(reason, std::move(what));
  }
  wait_with_failure();
  back_off(std::move(what), FailureClass::other);
}

bool FencedLane::accept(std::span<const FoundMessage> messages, const Answer& answer) {
  if (messages.empty()) return true;
  Advance advance{.broker_sequence = messages.back().broker_sequence,
                  .broker_id = messages.back().message_id};
  std::vector<GlobalSequence> sequences;
  for (const FoundMessage& found : messages) {
    sequences.push_back(found.sequence);
    advance.published.push_back({found.sequence, found.sequence, 1, found.redelivery,
                                 found.broker_sequence, found.broker_sequence});
  }
  std::vector<EventId> ids;
  bool passes = false;
  const bool is_known = guarded([&] {
    ids = core_.store.ids_of(sequences);
    // Positions tell what is missing between two messages, but not those of a shared stream.
    passes = core_.fence == Fence::subject && passes_what_waits(messages);
  });
  if (!is_known) {
    doubt();
    return false;
  }
  if (std::string missing = missing_in_store(messages, ids, answer.has_more); !missing.empty()) {
    doubt();
    stop(StopReason::store_went_back, std::move(missing));
    return false;
  }
  if (passes) {
    doubt();
    stop(StopReason::unreadable,
         "the broker has later pending messages, and earlier ones are missing");
    return false;
  }
  if (!this->advance(advance, false)) {
    doubt();
    return false;
  }
  drop_stored_failure(answer);
  return true;
}

bool FencedLane::adopt(const Answer& answer) {
  const Verdict verdict = compare_with(answer);
  const std::uint64_t end = end_of(answer);
  const std::uint64_t known = chain_.position().broker_sequence;
  const bool is_empty = end < std::max<std::uint64_t>(answer.first_sequence, 1);
  if (verdict.kind == Verdict::Kind::lost && !is_empty && broker_end_ != end) {
    broker_end_ = end;
    return ask_again();
  }
  std::vector<GlobalSequence> sequences;
  for (const FoundMessage& found : answer.found) sequences.push_back(found.sequence);
  std::vector<EventId> ids;
  if (!guarded([&] { ids = core_.store.ids_of(sequences); })) {
    doubt();
    return false;
  }
  const bool displaced = is_displaced(chain_.position(), verdict);
  if (displaced && !is_empty && !knows(verdict.place, answer, ids)) {
    chain_.start({.published_through = chain_.position().published_through});
    return ask_again();
  }
  Advance advance{.broker_sequence = end};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const FoundMessage& found = answer.found[i];
    if (found.broker_sequence == end) advance.broker_id = found.message_id;
    const bool is_new = found.broker_sequence > known || displaced;
    if (!is_new || !is_ours(found, ids[i])) continue;
    advance.published.push_back({found.sequence, found.sequence, 1, found.redelivery,
                                 found.broker_sequence, found.broker_sequence});
  }
  if (!this->advance(advance, false)) {
    doubt();
    return false;
  }
  drop_stored_failure(answer);
  // An answer may hold a part of what stands there: the next one tells.
  adopted_ = adopting_ = answer.has_more || end > known;
  return adopted_ ? ask_again() : true;
}

/// Other messages may have taken the places of lost ones, and a store that is an older copy, too,
/// doesn't know them. As they are in order, it knows all if it knows the last as published.
bool FencedLane::knows(const FoundMessage* place, const Answer& answer,
                       const std::vector<EventId>& ids) const {
  return place != nullptr && place->redelivery == 0 &&
         place->sequence <= chain_.position().published_through &&
         is_ours(*place, ids[static_cast<std::size_t>(place - answer.found.data())]);
}

bool FencedLane::ask_again() {
  doubt();
  ask();
  return false;
}

bool FencedLane::is_ours(const FoundMessage& found, const EventId& id) const {
  return found.is_ours && found.store_id == core_.store_id && carries(found, id);
}

// --- going on

void FencedLane::drop_stored_failure(const Answer& answer) {
  if (!failure_) return;
  const auto is_stored = [&](const FoundMessage& found) {
    return found.sequence == failure_->message.sequence &&
           found.redelivery == failure_->message.redelivery;
  };
  if (std::any_of(answer.found.begin(), answer.found.end(), is_stored)) failure_.reset();
}

/// The partition is about to be held for want of a read-back.
void FencedLane::wait_with_failure() noexcept {
  if (failure_) failure_->has_waited = true;
}

void FencedLane::resume(const Answer& answer) {
  doubt();
  doubt_.end();
  if (core_.fence == Fence::subject && answer.last_sequence == 0) {
    // The server compares with nothing, so do we.
    chain_.follow_nothing();
  }
  if (failure_) {
    explain(*failure_, answer);
    return act_on(*std::exchange(failure_, std::nullopt));
  }
  // Without a read-back the next message tells.
  if (is_fenced() && !misfit().empty()) recover();
}

void FencedLane::explain(Failure& failure, const Answer& stream) {
  if (failure.failure == FailureClass::stream_full && !stream.limit.empty()) {
    failure.detail += "; " + stream.limit;
  }
  if (failure.failure != FailureClass::too_large) return;
  const bool is_known = failure.size_limit.bytes > 0;
  const SizeLimit& limit = is_known ? failure.size_limit : stream.size_limit;
  failure.detail.insert(0, size_of(failure.bytes, limit) + ": ");
}

void FencedLane::report(const Failure& failure) {
  core_.report(Incident::Kind::publish_failed, partition(), failure.message.sequence,
               failure.detail);
}

void FencedLane::act_on(const Failure& failure) {
  if (failure.kind != Answer::Kind::stored_before) report(failure);
  switch (failure.kind) {
    case Answer::Kind::refused:
      return give_up(failure.message, ParkedMessage::Reason::refused, failure.message.attempts + 1,
                     failure.detail, failure.failure);
    case Answer::Kind::rejected: {
      suspicion_.close();
      const int attempts = failure.message.attempts + 1;
      if (attempts >= core_.options.max_attempts) {
        return give_up(failure.message, ParkedMessage::Reason::attempts, attempts, failure.detail,
                       failure.failure);
      }
      ++core_.counts.retried;
      return back_off(failure.detail, failure.failure, &failure.message, attempts);
    }
    case Answer::Kind::misconfigured:
      if (!failure.has_waited) on_misfit(failure.detail, failure.failure);
      return;
    case Answer::Kind::full:
      ++core_.counts.retried;
      if (!failure.has_waited) back_off(failure.detail, failure.failure);
      return;
    default:
      // A broker that was started again may have forgotten the id of its last message.
      chain_.follow_any();
      // Somebody else was there first, or nobody knows: the read-back has told. If it told nothing
      // twice in a row, don't ask as fast as we can.
      if (doubt_.count_fruitless() <= 1) return;
      if (failure.kind == Answer::Kind::stored_before) report(failure);
      if (!failure.has_waited) back_off(failure.detail, failure.failure);
  }
}

void FencedLane::give_up(const PendingMessage& message, ParkedMessage::Reason reason, int attempts,
                         const std::string& error, FailureClass failure) {
  if (core_.options.on_poison == OnPoison::stop) {
    return stop(StopReason::poison, "event " + std::to_string(message.sequence.value()) +
                                        " can't be published: " + error);
  }
  Advance advance;
  const ParkedMessage given_up{message.sequence, message.redelivery, reason, attempts, error,
                               failure};
  // What stands at the broker already can't be parked: sending it again is simply not done.
  const bool skip = core_.options.on_poison == OnPoison::skip || message.is_republished;
  (skip ? advance.skipped : advance.parked).push_back(given_up);
  this->advance(advance, false);
}

}  // namespace stela::relay

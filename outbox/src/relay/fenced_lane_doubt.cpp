// How a fenced lane finds its partition's position at the broker.
#include "relay/fenced_lane.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace stela::relay {

void FencedLane::doubt() {
  doubt_.begin();
  chain_.clear();
}

void FencedLane::ask() {
  if (!is_owned() || core_.session == 0 || is_backing_off()) return;
  if (!is_fenced()) return resume({});
  if (!doubt_.may_ask(is_in_trouble())) return;
  const std::uint64_t known = chain_.position().broker_sequence;
  const std::uint64_t from = std::min(known, broker_end_.value_or(known));
  try {
    core_.publisher.read_back(doubt_.ask(partition()), partition(),
                              std::max<std::uint64_t>(from, 1));
    core_.publisher.flush();
  } catch (const Error&) {
    core_.session_failed = true;
  }
}

void FencedLane::on_session_lost() {
  if (!is_owned() || !mark_stored()) return;
  doubt();
  if (is_looking()) release();
}

void FencedLane::on_read_back(const Answer& answer) {
  const bool has_answered = answer.kind == Answer::Kind::read_back;
  const Position& position = chain_.position();
  const Verdict verdict = compare(position, answer, core_.fence, core_.store_id);
  if (is_looking()) return end_look(has_answered && !verdict.stop, answer.holes);
  if (answer.kind == Answer::Kind::misconfigured) {
    if (failure_) failure_->has_waited = true;
    return on_misfit(answer);
  }
  if (!has_answered) return miss(answer);
  const bool ends_before = end_of(answer) < position.broker_sequence;
  if (ends_before && answer.has_more) {
    // The broker has the lost messages again.
    broker_end_.reset();
    return ask();
  }
  // Messages marked since the adoption began are as reliable as any others.
  if (adopting_ && ends_before) adopted_ = adopting_ = false;
  if (adopted_) return adopt(answer, verdict);
  if (verdict.stop) return on_contradiction(*verdict.stop, answer);
  broker_end_.reset();
  if (doubt_.end_loss()) recover();
  if (!accept(verdict.following, answer)) return;
  if (!answer.has_more) return resume(answer);
  // Messages published after only a part of it would be refused.
  ask();
}

void FencedLane::end_look(bool has_end, std::uint64_t holes) {
  if (has_end && core_.store.continue_lost(lease())) {
    // In a shared stream nobody can tell which messages of one subject are missing.
    const bool is_whole = core_.fence == Fence::stream && holes == 0;
    core_.report(Incident::Kind::broker_back, partition(), {},
                 is_whole ? "the broker has again what it seemed to have lost; the partition "
                            "continues"
                          : "the broker has the end again of what it seemed to have lost; the "
                            "partition continues, and messages before it may be missing");
  }
  // The next holder begins as after any other stop.
  release();
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
  std::string what = describe(chain_.position(), answer, core_.fence);
  if (reason == StopReason::store_went_back) {
    what += "; another message stands where the partition's last one was";
  }
  if (reason == StopReason::broker_lost) {
    broker_end_ = end_of(answer);
    if (!doubt_.is_lost_for_good()) {
      if (failure_) failure_->has_waited = true;
      return back_off({.error = std::move(what), .failure = FailureClass::other});
    }
    const bool has_last = !answer.found.empty() && is_ours(answer.found.back());
    what += describe_loss(chain_.position(), answer, partition(), has_last);
  }
  stop(reason, std::move(what));
}

bool FencedLane::accept(std::span<const FoundMessage> messages, const Answer& answer) {
  if (messages.empty()) return true;
  const std::vector<EventId> ids = ids_of(messages);
  if (std::string missing = missing_in_store(messages, ids, answer.has_more); !missing.empty()) {
    stop(StopReason::store_went_back, std::move(missing));
    return false;
  }
  // Positions reveal missing messages, except in a shared stream.
  if (core_.fence == Fence::subject && passes_what_waits(messages)) {
    stop(StopReason::unreadable,
         "the broker has later pending messages, and earlier ones are missing");
    return false;
  }
  const FoundMessage& last = messages.back();
  return mark_found({.broker_sequence = last.broker_sequence, .broker_id = last.message_id},
                    messages, ids);
}

void FencedLane::adopt(const Answer& answer, const Verdict& verdict) {
  const Position& position = chain_.position();
  const std::uint64_t end = end_of(answer);
  const bool is_empty = end < std::max<std::uint64_t>(answer.first_sequence, 1);
  if (verdict.stop == StopReason::broker_lost && !is_empty && broker_end_ != end) {
    broker_end_ = end;
    return ask();
  }
  // Other messages may have taken the places of lost ones; a store that is an older copy doesn't
  // know them either. Messages are in order, so the store knows all of them if it knows the last
  // one as published.
  const FoundMessage* const place = verdict.place;
  const bool is_known = place != nullptr && place->redelivery == 0 &&
                        place->sequence <= position.published_through && is_ours(*place);
  if (verdict.is_displaced && !is_empty && !is_known) {
    chain_.start({.published_through = position.published_through});
    return ask();
  }
  // An answer may contain only a part; the next one brings more.
  const bool is_part = answer.has_more || end > position.broker_sequence;
  Advance advance{.broker_sequence = end};
  if (!answer.found.empty() && answer.found.back().broker_sequence == end) {
    advance.broker_id = answer.found.back().message_id;
  }
  const auto messages = verdict.is_displaced ? std::span{answer.found} : verdict.following;
  if (!mark_found(std::move(advance), messages, ids_of(messages))) return;
  adopted_ = adopting_ = is_part;
  if (is_part) return ask();
  resume(answer);
}

bool FencedLane::mark_found(Advance advance, std::span<const FoundMessage> messages,
                            const std::vector<EventId>& ids) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const FoundMessage& found = messages[i];
    if (!is_ours(found, ids[i])) continue;
    advance.published.push_back({found.sequence, found.sequence, 1, found.redelivery,
                                 found.broker_sequence, found.broker_sequence});
  }
  if (!this->advance(advance, false)) return false;
  const auto has_failed = [&](const PublishedRun& run) {
    return run.first == failure_->link.message.sequence &&
           run.redelivery == failure_->link.message.redelivery;
  };
  if (failure_ && std::ranges::any_of(advance.published, has_failed)) failure_.reset();
  return true;
}

std::vector<EventId> FencedLane::ids_of(std::span<const FoundMessage> messages) const {
  std::vector<GlobalSequence> sequences;
  for (const FoundMessage& found : messages) sequences.push_back(found.sequence);
  return core_.store.ids_of(sequences);
}

bool FencedLane::is_ours(const FoundMessage& found, const EventId& id) const {
  return found.is_ours && found.store_id == core_.store_id && carries(found, id);
}

void FencedLane::resume(const Answer& answer) {
  doubt();
  doubt_.end();
  if (core_.fence == Fence::subject && answer.last_sequence == 0) {
    // The server compares with no message, so neither do we.
    chain_.follow_nothing();
  }
  if (failure_) {
    explain(*failure_, answer);
    return act_on(*std::exchange(failure_, std::nullopt));
  }
  // Without a read-back the next message shows whether the lane has recovered.
  if (is_fenced() && !misfit().empty()) recover();
}

}  // namespace stela::relay

#include "relay/fenced_lane.hpp"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

namespace stela::relay {

void FencedLane::begin(const Standing& standing) {
  forget();
  chain_.start({standing.broker_sequence, standing.broker_id, standing.published_through});
  suspicion_.begin(standing);
  adopted_ = standing.adopted;
  adopting_ = false;
  broker_end_.reset();
  ask();
}

void FencedLane::forget() {
  doubt();
  doubt_ = Doubt{core_};
  suspicion_ = {};
  failure_.reset();
  after_refusal_ = std::numeric_limits<std::size_t>::max();
}

std::size_t FencedLane::window() const noexcept {
  if (core_.fence == Fence::subject) return 1;
  // Without read-backs, a single message shows whether the trouble is over.
  if (!is_fenced() && is_in_trouble()) return 1;
  const auto most = static_cast<std::size_t>(core_.options.window);
  return std::min(suspicion_.window(most), after_refusal_);
}

BatchLimit FencedLane::wanted(int budget) const {
  const std::size_t open = chain_.unacknowledged();
  const Steady now = core_.now();
  if (open >= window() || core_.is_full() || is_blocked()) return {};
  if (now >= doubt_.look_again() || now >= core_.step_end) return {};
  const auto room = static_cast<int>(window() - open);
  // A fetch costs a transaction, which a few freed places don't justify.
  if (open > 0 && room < std::min(core_.options.batch_size, core_.options.window / 2)) return {};
  const std::int64_t most_bytes = chain_.room();
  if (open > 0 && most_bytes < chain_.bytes() / 2) return {};
  return {.messages = std::min({room, core_.options.batch_size, budget, wanted_}),
          .bytes = most_bytes};
}

void FencedLane::pump(int& budget) {
  if (!may_send()) return;
  bool sent = false;
  // Stored messages may have ended the trouble.
  if (!is_fenced() && is_in_trouble()) mark_if_due();
  while (may_send() && doubt_.is_over()) {
    const BatchLimit limit = wanted(budget);
    if (limit.messages <= 0) break;
    std::unique_ptr<PendingBatch> batch;
    if (!guarded([&] { batch = core_.store.next(partition(), chain_.cursor(), limit); })) break;
    const auto& messages = batch->messages;
    cut(*batch);
    if (messages.empty()) break;
    if (gave_up_killer(messages.front())) continue;

    budget -= static_cast<int>(messages.size());
    Advance note = chain_.progress();
    sort_out(*batch, note);
    if (!advance(note, !messages.empty())) break;
    if (messages.empty()) continue;
    if (!charge_suspect(messages.front())) break;
    sent = true;
    core_.counts.claimed += static_cast<std::int64_t>(messages.size());
    if (!publish(messages)) break;
  }
  if (sent) core_.publisher.flush();
  acquit_survived();
}

bool FencedLane::publish(const std::vector<PendingMessage>& messages) {
  for (const PendingMessage& message : messages) {
    // Each call may wait for the socket.
    if (&message != &messages.front() && core_.now() >= core_.step_end) return false;
    const OutgoingMessage outgoing = chain_.append(message, partition());
    try {
      core_.publisher.publish(outgoing);
    } catch (const Error&) {
      // It is unknown whether the message was sent, as after a disconnect.
      core_.session_failed = true;
    }
  }
  return true;
}

void FencedLane::cut(PendingBatch& batch) {
  blocked_by_.reset();
  if (is_fenced()) return;
  std::unordered_set<std::int64_t> in_flight;
  for (const Link& link : chain_) {
    if (!link.is_answered) in_flight.insert(link.message.stream);
  }
  const auto end = std::find_if(
      batch.messages.begin(), batch.messages.end(),
      [&](const PendingMessage& message) { return !in_flight.insert(message.stream).second; });
  const auto count = static_cast<int>(end - batch.messages.begin());
  const bool is_cut = end != batch.messages.end();
  if (is_cut) blocked_by_ = end->stream;
  wanted_ = is_cut ? std::max(2 * count, 2) : 2 * std::min(wanted_, core_.options.batch_size);
  batch.messages.erase(end, batch.messages.end());
}

bool FencedLane::is_blocked() const noexcept {
  return blocked_by_ && std::any_of(chain_.begin(), chain_.end(), [&](const Link& link) {
           return !link.is_answered && link.message.stream == *blocked_by_;
         });
}

void FencedLane::sort_out(PendingBatch& batch, Advance& advance) {
  std::unordered_set<std::int64_t> parked_streams;
  std::erase_if(batch.messages, [&](const PendingMessage& message) {
    ParkedMessage parked{message.sequence, message.redelivery, ParkedMessage::Reason::behind,
                         message.attempts};
    const bool is_behind = message.is_behind_parked || parked_streams.contains(message.stream);
    if (message.is_republished || !is_behind) {
      if (message.event != nullptr) return false;
      parked_streams.insert(message.stream);
      parked.reason = ParkedMessage::Reason::refused;
      parked.error = message.problem;
      parked.failure = FailureClass::other;
    }
    advance.parked.push_back(std::move(parked));
    return true;
  });
  if (batch.messages.empty()) return;
  advance.flight_count += static_cast<std::int64_t>(batch.messages.size());
  advance.flight_through = std::max(advance.flight_through, batch.messages.back().sequence);
}

void FencedLane::on_answer(const Answer& answer) {
  if (!is_owned()) return;
  if (doubt_.awaits(answer)) {
    // If the store fails, the question is asked again.
    doubt();
    guarded([&] { on_read_back(answer); });
    return;
  }
  Link* const link = chain_.find(answer.request);
  if (link == nullptr || link->is_answered) return;
  chain_.answer(*link);
  const bool is_stored = answer.kind == Answer::Kind::stored ||
                         (!is_fenced() && answer.kind == Answer::Kind::stored_before);
  const Link* const open = chain_.first_unanswered();
  if (!is_stored) {
    on_failure(*link, answer);
  } else if (!chain_.store(*link, answer.broker_sequence)) {
    on_failure(*link, {.kind = Answer::Kind::stored_before, .detail = "stored at another place"});
  } else if (is_fenced() && open != nullptr && open->request < link->request) {
    // The answer overtook an earlier one, whose outcome is unknown.
    doubt_.announce();
  }
  if (!doubt_.is_announced() || open != nullptr || !mark_stored()) return;
  doubt();
  ask();
}

bool FencedLane::mark_stored() {
  if (is_fenced()) return true;
  const Advance stored = chain_.all_stored();
  // Messages that can't be marked now are sent again under the same ids.
  if (!stored.published.empty()) advance(stored, false);
  return is_owned();
}

bool FencedLane::advance(const Advance& advance, bool durable) {
  if (!change([&] { return core_.store.advance(lease(), advance, durable); })) return false;
  std::int64_t published = 0;
  for (const PublishedRun& run : advance.published) published += run.count;
  const auto parked = static_cast<std::int64_t>(advance.parked.size());
  const auto skipped = static_cast<std::int64_t>(advance.skipped.size());
  core_.counts.published += published;
  core_.counts.parked += parked;
  core_.counts.skipped += skipped;
  const auto report = [&](Incident::Kind kind, const ParkedMessage& message) {
    core_.report(kind, partition(), message.sequence, message.error);
  };
  for (const ParkedMessage& message : advance.parked) {
    if (message.reason != ParkedMessage::Reason::behind) report(Incident::Kind::parked, message);
  }
  for (const ParkedMessage& message : advance.skipped) report(Incident::Kind::skipped, message);
  suspicion_.pass(published + parked + skipped);
  chain_.advance(advance);
  if (published > 0) {
    doubt_.bear_fruit();
    if (after_refusal_ < static_cast<std::size_t>(core_.options.window)) after_refusal_ *= 2;
  }
  return true;
}

void FencedLane::mark_if_due() {
  if (chain_.acknowledged() == 0) return;
  const bool more_to_come = chain_.unacknowledged() > 0;
  const auto batch_size = static_cast<std::size_t>(core_.options.batch_size);
  if (more_to_come && chain_.acknowledged() < batch_size) return;
  if (advance(chain_.progress(), false)) recover();
}

void FencedLane::on_time() {
  const Steady now = core_.now();
  const Link* const open = chain_.first_unanswered();
  if (open != nullptr && now >= open->sent + core_.options.publish_timeout) {
    miss({.request = open->request,
          .detail = "no answer to a message",
          .failure = FailureClass::no_answer});
  } else if (doubt_.is_asked() && now >= doubt_.answer_due()) {
    miss({.detail = "no answer to a read-back", .failure = FailureClass::no_answer});
  }
  if (doubt_.is_over() && chain_.empty() && now >= doubt_.look_again()) doubt();
  if (doubt_.is_unasked()) ask();
}

void FencedLane::miss(const Answer& missing) {
  on_silence(missing.detail);
  chain_.shrink();
  // Without a fence only this message's fate is unknown.
  if (!is_fenced()) return on_answer(missing);
  doubt();
  if (is_looking()) return release();
  // The first answer may just have been lost.
  if (doubt_.count_fruitless() <= 1) return;
  if (failure_) failure_->has_waited = true;
  back_off({.error = missing.detail, .failure = missing.failure});
}

void FencedLane::retry() {
  if (!is_owned() || !is_in_trouble() || !is_backing_off()) return;
  wait_no_more();
  doubt();
}

Steady FencedLane::deadline() const {
  if (!is_owned()) return never;
  Steady earliest = is_backing_off() ? held_until() : never;
  if (doubt_.is_over() && chain_.empty()) earliest = std::min(earliest, doubt_.look_again());
  if (doubt_.is_asked()) earliest = std::min(earliest, doubt_.answer_due());
  if (const Link* const open = chain_.first_unanswered()) {
    earliest = std::min(earliest, open->sent + core_.options.publish_timeout);
  }
  return earliest;
}

}  // namespace stela::relay

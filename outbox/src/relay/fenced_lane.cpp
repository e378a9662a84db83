#include "relay/fenced_lane.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace stela::relay {

// --- ownership

void FencedLane::begin(const Standing& standing) {
  forget();
  chain_.start({standing.broker_sequence, standing.broker_id, standing.published_through});
  doubt_.forget_loss();
  suspicion_.begin(standing);
  adopted_ = standing.adopted;
  adopting_ = false;
  broker_end_.reset();
  ask();
}

void FencedLane::forget() {
  doubt();
  doubt_.bear_fruit();
  suspicion_ = {};
  failure_.reset();
}

// --- publishing

std::size_t FencedLane::window() const noexcept {
  if (core_.fence == Fence::subject) return 1;
  // One message tells whether the trouble is over; a read-back would.
  if (!is_fenced() && is_in_trouble()) return 1;
  return suspicion_.window(static_cast<std::size_t>(core_.options.window));
}

BatchLimit FencedLane::wanted(int budget) const {
  const std::size_t open = chain_.unacknowledged();
  const Steady now = core_.now();
  if (open >= window() || core_.is_full() || is_blocked()) return {};
  if (now >= doubt_.look_again() || now >= core_.step_end) return {};
  const auto room = static_cast<int>(window() - open);
  // A fetch costs a transaction: not for the few places that the last answers made free.
  if (open > 0 && room < std::min(core_.options.batch_size, core_.options.window / 2)) return {};
  const std::int64_t most_bytes = chain_.room();
  if (open > 0 && most_bytes < chain_.bytes() / 2) return {};
  return {.messages = std::min({room, core_.options.batch_size, budget, wanted_}),
          .bytes = most_bytes};
}

void FencedLane::send(int& budget) {
  bool sent = false;
  // What was stored may have ended it.
  if (!is_fenced() && is_in_trouble()) mark_if_due();
  while (is_owned() && doubt_.is_over() && !is_backing_off()) {
    const BatchLimit limit = wanted(budget);
    if (limit.messages <= 0) break;
    std::unique_ptr<PendingBatch> batch;
    if (!guarded_read([&] { batch = core_.store.next(partition(), chain_.cursor(), limit); }))
      break;
    cut(*batch);
    if (batch->messages.empty()) break;
    if (gave_up_killer(batch->messages.front())) continue;

    Advance note = chain_.progress();
    const auto messages = sort_out(*batch, note);
    if (!advance(note, !messages.empty())) break;
    if (!messages.empty() && !charge_suspect(*messages.front())) break;
    sent = sent || !messages.empty();
    budget -= static_cast<int>(batch->messages.size());
    core_.counts.claimed += static_cast<std::int64_t>(messages.size());
    if (!publish(*batch, messages)) break;
  }
  if (sent) core_.publisher.flush();
  acquit_survived();
}

bool FencedLane::publish(const PendingBatch& batch,
                         const std::vector<const PendingMessage*>& messages) {
  auto next = messages.begin();
  for (const PendingMessage& message : batch.messages) {
    if (next != messages.end() && *next == &message) {
      // Each may wait for the socket.
      if (next != messages.begin() && core_.now() >= core_.step_end) return false;
      publish(message);
      ++next;
    }
    chain_.move_behind(message);
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
  if (end == batch.messages.end()) {
    wanted_ = std::min(2 * std::min(wanted_, core_.options.batch_size), core_.options.batch_size);
    return;
  }
  blocked_by_ = end->stream;
  wanted_ = std::max(2 * count, 2);
  batch.messages.erase(end, batch.messages.end());
}

bool FencedLane::is_blocked() const noexcept {
  return blocked_by_ && std::any_of(chain_.begin(), chain_.end(), [&](const Link& link) {
           return !link.is_answered && link.message.stream == *blocked_by_;
         });
}

std::vector<const PendingMessage*> FencedLane::sort_out(const PendingBatch& batch,
                                                        Advance& advance) {
  std::vector<const PendingMessage*> publishable;
  publishable.reserve(batch.messages.size());
  std::unordered_set<std::int64_t> parked_streams;
  for (const PendingMessage& message : batch.messages) {
    const bool behind = !message.is_republished &&
                        (message.is_behind_parked || parked_streams.contains(message.stream));
    if (behind) {
      advance.parked.push_back({message.sequence, message.redelivery, ParkedMessage::Reason::behind,
                                message.attempts, ""});
      continue;
    }
    if (message.event == nullptr) {
      parked_streams.insert(message.stream);
      advance.parked.push_back({message.sequence, message.redelivery,
                                ParkedMessage::Reason::refused, message.attempts, message.problem,
                                FailureClass::other});
      continue;
    }
    publishable.push_back(&message);
  }
  advance.flight_count += static_cast<std::int64_t>(publishable.size());
  if (!publishable.empty()) {
    advance.flight_through = std::max(advance.flight_through, publishable.back()->sequence);
  }
  return publishable;
}

/// True if whoever sent this message died of it, so often that nobody shall send it any more.
bool FencedLane::gave_up_killer(const PendingMessage& message) {
  if (!suspicion_.suspects(message) || message.attempts < core_.options.max_attempts) return false;
  give_up(message, ParkedMessage::Reason::attempts, message.attempts,
          "workers died each time when they sent this message alone", FailureClass::other);
  return true;
}

/// As late as can be: whatever else holds the worker up and kills it is no fault of the message.
bool FencedLane::charge_suspect(const PendingMessage& message) {
  if (!suspicion_.suspects(message)) return true;
  if (!note_attempts(message, message.attempts + 1,
                     "a worker died while it was publishing this message alone")) {
    return false;
  }
  suspicion_.charge(message);
  return true;
}

/// Whoever lives once it is handed over takes the charge back: the message kills nobody.
void FencedLane::acquit_survived() {
  const PendingMessage* const charged = suspicion_.charged();
  if (charged == nullptr) return;
  const auto is_on_its_way = [&](const Link& link) {
    return link.message.sequence == charged->sequence && !link.is_answered;
  };
  if (std::none_of(chain_.begin(), chain_.end(), is_on_its_way)) return;
  // If that can't be noted now, the next pass tries again.
  if (note_attempts(*charged, charged->attempts, "")) suspicion_.close();
}

bool FencedLane::note_attempts(const PendingMessage& message, int attempts, std::string error) {
  const Trouble trouble{
      .message = message, .message_attempts = attempts, .error = std::move(error)};
  bool noted = false;
  if (!guarded([&] { noted = core_.store.note(lease(), trouble); })) return false;
  if (!noted) lose("its epoch has passed");
  return noted;
}

void FencedLane::publish(const PendingMessage& message) {
  const std::uint64_t request = core_.name_request(partition());
  const Chain::Names names = chain_.append(message, request);
  std::optional<GenerationMark> generation;
  if (core_.fence == Fence::stream && message.generation.number > 1) {
    generation = message.generation;
  }
  const OutgoingMessage outgoing{.request = request,
                                 .partition = partition(),
                                 .event = *message.event,
                                 .store_id = core_.store_id,
                                 .message_id = names.message_id,
                                 .redelivery = message.redelivery,
                                 .previous = names.previous,
                                 .predecessor = names.predecessor,
                                 .generation = generation};
  try {
    core_.publisher.publish(outgoing);
  } catch (const Error&) {
    // Whether it left is unknown, as after a disconnect.
    core_.session_failed = true;
  }
}

// --- answers

void FencedLane::on_answer(const Answer& answer) {
  if (!is_owned()) return;
  if (answer.kind == Answer::Kind::read_back || doubt_.is_about_question(answer)) {
    if (doubt_.is_asked() && doubt_.is_about_question(answer)) on_read_back(answer);
    return;
  }
  Link* const link = chain_.find(answer.request);
  if (link == nullptr || link->is_answered) return;
  chain_.answer(*link);
  const bool is_stored = answer.kind == Answer::Kind::stored ||
                         (!is_fenced() && answer.kind == Answer::Kind::stored_before);
  if (is_stored) {
    on_stored(*link, answer);
  } else {
    on_failure(*link, answer);
  }
  if (doubt_.is_announced()) settle();
}

void FencedLane::on_stored(Link& link, const Answer& answer) {
  if (!chain_.store(link, answer.broker_sequence)) {
    return on_failure(link,
                      {.kind = Answer::Kind::stored_before, .detail = "stored at another place"});
  }
  // An answer that overtook another: what became of that one is unknown.
  if (is_fenced() && !chain_.is_acknowledged(link)) doubt_.announce();
}

void FencedLane::on_failure(const Link& link, const Answer& answer) {
  if (answer.kind == Answer::Kind::unknown) core_.session_doubted = true;
  doubt_.announce();
  if (failure_ && failure_->position <= link.position) return;
  failure_ = Failure{.message = link.message,
                     .kind = answer.kind,
                     .detail = answer.detail,
                     .position = link.position,
                     .failure = answer.failure,
                     .bytes = link.bytes,
                     .size_limit = answer.size_limit};
}

void FencedLane::settle() {
  if (chain_.first_unanswered() != nullptr || !mark_stored()) return;
  doubt();
  ask();
}

bool FencedLane::mark_stored() {
  if (is_fenced()) return true;
  const auto is_stored = [](const Link& link) { return link.is_stored; };
  if (std::none_of(chain_.begin(), chain_.end(), is_stored)) return true;
  // What can't be marked now is sent again, under the same ids.
  advance(chain_.all_stored(), false);
  return is_owned();
}

bool FencedLane::advance(const Advance& advance, bool durable) {
  bool noted = false;
  if (!guarded([&] { noted = core_.store.advance(lease(), advance, durable); })) return false;
  if (!noted) {
    lose("its epoch has passed");
    return false;
  }
  count(advance);
  auto past = static_cast<std::int64_t>(advance.parked.size() + advance.skipped.size());
  for (const PublishedRun& run : advance.published) past += run.count;
  suspicion_.pass(past);
  chain_.advance(advance);
  if (!advance.published.empty()) doubt_.bear_fruit();
  return true;
}

void FencedLane::mark_if_due() {
  if (!is_owned()) return;
  if (chain_.acknowledged() == 0) return;
  const bool more_to_come = chain_.unacknowledged() > 0;
  const auto batch_size = static_cast<std::size_t>(core_.options.batch_size);
  if (more_to_come && chain_.acknowledged() < batch_size) return;
  if (advance(chain_.progress(), false)) recover();
}

// --- time

void FencedLane::on_time() {
  if (!is_owned()) return;
  const Steady now = core_.now();
  if (doubt_.is_asked() && doubt_.answer_due() <= now) miss("no answer to a read-back");
  if (chain_.waiting_since() <= now - core_.options.publish_timeout) {
    miss(*chain_.first_unanswered());
  }
  if (doubt_.is_over() && chain_.empty() && now >= doubt_.look_again()) doubt();
  if (doubt_.is_unasked() && is_owned()) ask();
}

void FencedLane::miss(Link& link) {
  const std::string what = "no answer to a message";
  if (is_fenced()) return miss(what);
  on_silence(what);
  chain_.shrink();
  chain_.answer(link);
  on_failure(link,
             {.kind = Answer::Kind::unknown, .detail = what, .failure = FailureClass::no_answer});
  settle();
}

void FencedLane::miss(const std::string& what, FailureClass failure) {
  on_silence(what);
  chain_.shrink();
  doubt();
  if (is_looking()) return end_look(Look::lost);
  // The first may have got lost.
  if (doubt_.count_fruitless() <= 1) return;
  wait_with_failure();
  back_off(what, failure);
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
  if (!chain_.empty() && chain_.waiting_since() != never) {
    earliest = std::min(earliest, chain_.waiting_since() + core_.options.publish_timeout);
  }
  return earliest;
}

}  // namespace stela::relay

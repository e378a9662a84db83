#include "relay/fenced_lane.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace stela::relay {
namespace {

/// A message id is the event's id, with ".r<redelivery>" behind it for what was published before.
constexpr std::size_t event_id_size = 36;

std::string_view event_id_in(std::string_view message_id) noexcept {
  return message_id.substr(0, event_id_size);
}

}  // namespace

// --- ownership

void FencedLane::begin(const Standing& standing) {
  forget();
  published_through_ = standing.published_through;
  broker_sequence_ = standing.broker_sequence;
  broker_id_ = standing.broker_id;
  adopted_ = standing.adopted;
  if (standing.unclean && standing.flight_count > 0) {
    careful_through_ = standing.flight_through;
    if (standing.flight_count == 1) suspect_ = standing.flight_through;
  }
  doubt();
  ask();
}

void FencedLane::forget() {
  doubt();
  has_looked_ = false;
  failure_.reset();
  careful_through_ = {};
  suspect_ = {};
  fruitless_ = 0;
}

// --- publishing

std::size_t FencedLane::window() const noexcept {
  if (core_.fence == Fence::subject) return 1;
  return tail_.value() < careful_through_.value() ? 1
                                                  : static_cast<std::size_t>(core_.options.window);
}

int FencedLane::wanted(int budget) const noexcept {
  const std::size_t open = flight_.size() - acknowledged_;
  if (open >= window()) return 0;
  const auto room = static_cast<int>(window() - open);
  // A fetch costs a transaction: not for the few places that the last answers made free.
  if (open > 0 && room < std::min(core_.options.batch_size, core_.options.window / 2)) {
    return 0;
  }
  return std::min({room, core_.options.batch_size, budget});
}

void FencedLane::send(int& budget) {
  bool sent = false;
  while (is_owned() && state_ == State::ready && !is_backing_off()) {
    const int limit = wanted(budget);
    if (limit <= 0) break;
    std::unique_ptr<PendingBatch> batch;
    if (!guarded([&] { batch = core_.store.next(partition(), cursor_, limit); })) break;
    if (batch->messages.empty()) break;
    if (core_.mutation == Mutation::no_sort)
      std::reverse(batch->messages.begin(), batch->messages.end());
    if (!charge_suspect(batch->messages.front())) break;

    Advance note = progress();
    const auto messages = sort_out(*batch, note);
    if (!advance(note, !messages.empty())) break;
    for (const PendingMessage* const message : messages) publish(*message);
    // What is sent again comes first in a batch, and what waits behind it.
    for (const PendingMessage& message : batch->messages) {
      if (message.redelivery > 0) cursor_.redelivery = message.redelivery;
      if (message.redelivery == 0) cursor_.sequence = message.sequence;
    }
    budget -= static_cast<int>(batch->messages.size());
    core_.counts.claimed += static_cast<std::int64_t>(messages.size());
    sent = sent || !messages.empty();
  }
  if (sent) core_.publisher.flush();
}

std::vector<const PendingMessage*> FencedLane::sort_out(const PendingBatch& batch,
                                                        Advance& advance) {
  std::vector<const PendingMessage*> publishable;
  publishable.reserve(batch.messages.size());
  std::unordered_set<std::int64_t> parked_streams;
  for (const PendingMessage& message : batch.messages) {
    const bool behind = core_.mutation != Mutation::no_park_behind && !message.is_republished &&
                        (message.is_behind_parked || parked_streams.contains(message.stream));
    if (behind) {
      advance.parked.push_back({message.sequence, message.redelivery, ParkedMessage::Reason::behind,
                                message.attempts, ""});
      continue;
    }
    if (message.event == nullptr) {
      parked_streams.insert(message.stream);
      advance.parked.push_back({message.sequence, message.redelivery,
                                ParkedMessage::Reason::refused, message.attempts, message.problem});
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

bool FencedLane::charge_suspect(const PendingMessage& message) {
  if (suspect_.value() == 0 || message.sequence != suspect_) return true;
  suspect_ = {};
  const int attempts = message.attempts + 1;
  const std::string error = "a worker died while it was publishing this message alone";
  if (attempts >= core_.options.max_attempts) {
    give_up(message, ParkedMessage::Reason::attempts, attempts, error);
    return false;
  }
  const Trouble trouble{.message = message, .message_attempts = attempts, .error = error};
  bool noted = false;
  if (!guarded([&] { noted = core_.store.note(lease(), trouble); })) return false;
  if (!noted) lose("its epoch has passed");
  return noted;
}

std::string FencedLane::message_id_of(const PendingMessage& message) const {
  std::string id = message.event->id.to_string();
  // What was stored once already must not be taken for its own duplicate.
  if (message.is_republished) id += ".r" + std::to_string(message.redelivery);
  return id;
}

void FencedLane::publish(const PendingMessage& message) {
  InFlight& sent = flight_.emplace_back();
  sent.request = core_.name_request(partition());
  sent.message = message;
  sent.message.event = nullptr;
  sent.message_id = message_id_of(message);
  sent.position = tail_position_ + 1;
  sent.sent = core_.now();

  Predecessor predecessor{tail_position_, tail_id_};
  if (core_.mutation == Mutation::fence_on_wrong_sequence) {
    predecessor = {static_cast<std::uint64_t>(tail_.value()), {}};
  }
  OutgoingMessage outgoing{.request = sent.request,
                           .partition = partition(),
                           .event = *message.event,
                           .store_id = core_.store_id,
                           .message_id = sent.message_id,
                           .redelivery = message.redelivery,
                           .previous = tail_,
                           .predecessor = predecessor};
  const bool unfenced = core_.mutation == Mutation::dedup_only ||
                        (core_.mutation == Mutation::naive_pipeline && flight_.size() > 1);
  if (unfenced) outgoing.predecessor.reset();
  try {
    core_.publisher.publish(outgoing);
  } catch (const Error&) {
    // Whether it left is unknown, as after a disconnect.
    core_.session_failed = true;
  }
  tail_position_ = sent.position;
  tail_id_ = sent.message_id;
  tail_ = std::max(tail_, message.sequence);
  if (core_.mutation == Mutation::mark_before_ack) {
    sent.stored = sent.answered = true;
    acknowledged_ = flight_.size();
  }
}

// --- answers

FencedLane::InFlight* FencedLane::find(std::uint64_t request) noexcept {
  // Requests are numbered in the order in which they were sent.
  const auto found =
      std::lower_bound(flight_.begin(), flight_.end(), request,
                       [](const InFlight& sent, std::uint64_t r) { return sent.request < r; });
  return found != flight_.end() && found->request == request ? &*found : nullptr;
}

void FencedLane::on_answer(const Answer& answer) {
  if (!is_owned()) return;
  if (answer.kind == Answer::Kind::read_back || answer.request == asked_request_) {
    if (state_ == State::reading && answer.request == asked_request_) on_read_back(answer);
    return;
  }
  const bool by_order =
      core_.mutation == Mutation::replies_not_matched && acknowledged_ < flight_.size();
  InFlight* const message = by_order ? &flight_[acknowledged_] : find(answer.request);
  if (message == nullptr || message->answered) return;
  message->answered = true;
  if (answer.kind == Answer::Kind::stored) {
    on_stored(*message, answer);
  } else if (core_.mutation == Mutation::mark_on_timeout && answer.kind == Answer::Kind::unknown) {
    message->stored = true;
    while (acknowledged_ < flight_.size() && flight_[acknowledged_].stored) ++acknowledged_;
  } else {
    on_failure(*message, answer.kind, answer.detail);
  }
  if (state_ == State::settling) settle();
}

void FencedLane::on_stored(InFlight& message, const Answer& answer) {
  const bool unchecked =
      core_.mutation == Mutation::dedup_only || core_.mutation == Mutation::replies_not_matched;
  if (answer.broker_sequence != message.position && !unchecked) {
    return on_failure(message, Answer::Kind::stored_before, "stored at another place");
  }
  message.stored = true;
  while (acknowledged_ < flight_.size() && flight_[acknowledged_].stored) ++acknowledged_;
  // An answer that overtook another: what became of that one is unknown.
  const bool overtook = acknowledged_ == 0 || flight_[acknowledged_ - 1].request < message.request;
  if (state_ == State::ready && overtook) state_ = State::settling;
}

void FencedLane::on_failure(const InFlight& message, Answer::Kind kind, const std::string& detail) {
  if (kind == Answer::Kind::unknown || kind == Answer::Kind::disconnected) {
    core_.session_failed = true;
  }
  if (state_ == State::ready) state_ = State::settling;
  if (failure_ && failure_->position <= message.position) return;
  failure_ = Failure{message.message, kind, detail, message.position};
}

void FencedLane::settle() {
  const bool all = std::all_of(flight_.begin(), flight_.end(),
                               [](const InFlight& sent) { return sent.answered; });
  if (!all) return;
  doubt();
  ask();
}

Advance FencedLane::progress() const {
  Advance advance;
  const std::size_t done = acknowledged_;
  for (std::size_t i = 0; i < done; ++i) {
    const InFlight& sent = flight_[i];
    auto& runs = advance.published;
    const bool extends =
        !runs.empty() && runs.back().redelivery == 0 && sent.message.redelivery == 0;
    if (!extends) {
      runs.push_back({.first = sent.message.sequence,
                      .redelivery = sent.message.redelivery,
                      .first_broker = sent.position});
    }
    runs.back().last = sent.message.sequence;
    runs.back().last_broker = sent.position;
    ++runs.back().count;
  }
  if (done > 0) {
    advance.broker_sequence = flight_[done - 1].position;
    advance.broker_id = flight_[done - 1].message_id;
  }
  advance.flight_count = static_cast<std::int64_t>(flight_.size() - done);
  if (done < flight_.size()) advance.flight_through = flight_.back().message.sequence;
  return advance;
}

bool FencedLane::advance(const Advance& advance, bool durable) {
  Lease held = lease();
  if (core_.mutation == Mutation::no_epoch_in_mark) held.epoch = -held.epoch;
  bool noted = false;
  if (!guarded([&] { noted = core_.store.advance(held, advance, durable); })) return false;
  if (!noted) {
    lose("its epoch has passed");
    return false;
  }
  count(advance);
  for (const PublishedRun& run : advance.published) {
    if (run.redelivery == 0) published_through_ = std::max(published_through_, run.last);
  }
  if (!advance.published.empty()) {
    flight_.erase(flight_.begin(), flight_.begin() + static_cast<std::ptrdiff_t>(acknowledged_));
    acknowledged_ = 0;
    fruitless_ = 0;
  }
  if (advance.broker_sequence) {
    broker_sequence_ = *advance.broker_sequence;
    broker_id_ = advance.broker_id;
  }
  return true;
}

void FencedLane::mark_if_due() {
  if (!is_owned()) return;
  if (acknowledged_ == 0) return;
  const bool more_to_come = acknowledged_ < flight_.size();
  if (more_to_come && acknowledged_ < static_cast<std::size_t>(core_.options.batch_size)) return;
  if (advance(progress(), false)) recover();
}

// --- doubt, and the way out of it

void FencedLane::doubt() {
  state_ = State::doubtful;
  // What was acknowledged and not marked is found again at the broker.
  flight_.clear();
  acknowledged_ = 0;
  cursor_ = {};
  tail_position_ = broker_sequence_;
  tail_id_ = broker_id_;
  tail_ = published_through_;
}

void FencedLane::ask() {
  if (core_.session == 0 || is_backing_off()) return;
  state_ = State::reading;
  asked_request_ = core_.name_request(partition());
  asked_ = core_.now();
  ++core_.counts.read_backs;
  try {
    core_.publisher.read_back(asked_request_, partition(),
                              std::max<std::uint64_t>(broker_sequence_, 1));
    core_.publisher.flush();
  } catch (const Error&) {
    core_.session_failed = true;
  }
}

void FencedLane::on_session() {
  if (is_owned() && state_ == State::doubtful) ask();
}

void FencedLane::on_session_lost() {
  if (is_owned()) doubt();
}

std::string_view FencedLane::contradiction(const Answer& answer) const {
  const bool aged_out = core_.fence == Fence::subject && answer.last_sequence == 0 &&
                        broker_sequence_ < answer.first_sequence;
  if (answer.last_sequence < broker_sequence_ && !aged_out) return "broker_lost";
  std::uint64_t expected = broker_sequence_;
  for (const FoundMessage& found : answer.found) {
    if (found.broker_sequence == broker_sequence_) {
      // Without an id it was adopted, whoever sent it.
      if (!broker_id_.empty() && found.message_id != broker_id_) return "store_went_back";
      continue;
    }
    if (!found.is_ours || found.store_id != core_.store_id) return "foreign_writer";
    if (core_.fence == Fence::stream && found.broker_sequence != ++expected) return "unreadable";
    expected = found.broker_sequence;
  }
  if (expected != answer.last_sequence && !aged_out) return "unreadable";
  return {};
}

void FencedLane::on_read_back(const Answer& answer) {
  if (answer.kind == Answer::Kind::misconfigured) {
    core_.misconfigured = answer.detail;
    return doubt();
  }
  if (answer.kind != Answer::Kind::read_back) {
    core_.session_failed = true;
    return doubt();
  }
  if (adopted_) {
    if (adopt(answer)) resume();
    return;
  }
  if (core_.mutation == Mutation::no_read_back_at_acquisition && !has_looked_) {
    // Goes on behind whatever stands there.
    broker_sequence_ = answer.last_sequence;
    if (!answer.found.empty()) broker_id_ = answer.found.back().message_id;
    has_looked_ = true;
    return resume();
  }
  const std::string_view reason = contradiction(answer);
  if (!reason.empty()) {
    doubt();
    return stop(reason, "the partition stood at broker sequence " +
                            std::to_string(broker_sequence_) + ", and the broker has " +
                            std::to_string(answer.first_sequence) + " to " +
                            std::to_string(answer.last_sequence));
  }
  if (core_.fence == Fence::subject && answer.last_sequence == 0) {
    // Nothing of the partition is left: the server compares with nothing, so do we.
    broker_sequence_ = 0;
    broker_id_.clear();
  }
  if (accept(answer)) resume();
}

bool FencedLane::accept(const Answer& answer) {
  Advance advance;
  std::vector<GlobalSequence> sequences;
  for (const FoundMessage& found : answer.found) {
    if (found.broker_sequence == broker_sequence_) continue;
    sequences.push_back(found.sequence);
    advance.published.push_back({found.sequence, found.sequence, 1, found.redelivery,
                                 found.broker_sequence, found.broker_sequence});
    advance.broker_sequence = found.broker_sequence;
    advance.broker_id = found.message_id;
  }
  if (sequences.empty()) return true;
  std::vector<EventId> ids;
  if (!guarded([&] { ids = core_.store.ids_of(sequences); })) {
    doubt();
    return false;
  }
  std::size_t at = 0;
  for (const FoundMessage& found : answer.found) {
    if (found.broker_sequence == broker_sequence_) continue;
    if (ids[at++].to_string() == event_id_in(found.message_id)) continue;
    doubt();
    stop("store_went_back", "the broker has event " + std::to_string(found.sequence.value()) +
                                " as " + found.message_id + ", and the store doesn't");
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
  Advance advance{.broker_sequence = answer.last_sequence};
  std::vector<GlobalSequence> sequences;
  for (const FoundMessage& found : answer.found) sequences.push_back(found.sequence);
  std::vector<EventId> ids;
  if (!guarded([&] { ids = core_.store.ids_of(sequences); })) {
    doubt();
    return false;
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const FoundMessage& found = answer.found[i];
    const bool is_ours = found.is_ours && found.store_id == core_.store_id &&
                         ids[i].to_string() == event_id_in(found.message_id);
    if (found.broker_sequence == answer.last_sequence) advance.broker_id = found.message_id;
    if (!is_ours || found.broker_sequence <= broker_sequence_) continue;
    advance.published.push_back({found.sequence, found.sequence, 1, found.redelivery,
                                 found.broker_sequence, found.broker_sequence});
  }
  if (!this->advance(advance, false)) {
    doubt();
    return false;
  }
  adopted_ = false;
  drop_stored_failure(answer);
  return true;
}

void FencedLane::drop_stored_failure(const Answer& answer) {
  if (!failure_) return;
  const auto is_stored = [&](const FoundMessage& found) {
    return found.sequence == failure_->message.sequence &&
           found.redelivery == failure_->message.redelivery;
  };
  if (std::any_of(answer.found.begin(), answer.found.end(), is_stored)) failure_.reset();
}

void FencedLane::resume() {
  doubt();
  state_ = State::ready;
  if (failure_) act_on(*std::exchange(failure_, std::nullopt));
}

void FencedLane::act_on(const Failure& failure) {
  core_.report(Incident::Kind::publish_failed, partition(), failure.message.sequence,
               failure.detail);
  switch (failure.kind) {
    case Answer::Kind::refused:
      return give_up(failure.message, ParkedMessage::Reason::refused, failure.message.attempts + 1,
                     failure.detail);
    case Answer::Kind::rejected: {
      const int attempts = failure.message.attempts + 1;
      if (core_.mutation == Mutation::drop_after_three_attempts && attempts >= 3) {
        const GlobalSequence dropped = failure.message.sequence;
        advance({.published = {{dropped, dropped, 1, failure.message.redelivery}}}, false);
        return;
      }
      if (attempts >= core_.options.max_attempts) {
        return give_up(failure.message, ParkedMessage::Reason::attempts, attempts, failure.detail);
      }
      ++core_.counts.retried;
      if (core_.mutation == Mutation::skip_failed_row) {
        cursor_.sequence = failure.message.sequence;
        return;
      }
      return back_off(failure.detail, &failure.message, attempts);
    }
    case Answer::Kind::misconfigured:
      core_.misconfigured = failure.detail;
      return doubt();
    case Answer::Kind::full:
      ++core_.counts.retried;
      if (core_.mutation == Mutation::skip_failed_row) {
        cursor_.sequence = failure.message.sequence;
        return;
      }
      return back_off(failure.detail);
    default:
      // Somebody else was there first, or nobody knows: the read-back has told. If it told nothing
      // twice in a row, don't ask as fast as we can.
      ++fruitless_;
      // A broker that was started again may have forgotten the id of its last message.
      tail_id_.clear();
      if (fruitless_ > 1) back_off(failure.detail);
  }
}

void FencedLane::give_up(const PendingMessage& message, ParkedMessage::Reason reason, int attempts,
                         const std::string& error) {
  if (core_.options.on_poison == OnPoison::halt) {
    return stop("poison", "event " + std::to_string(message.sequence.value()) +
                              " can't be published: " + error);
  }
  Advance advance;
  const ParkedMessage given_up{message.sequence, message.redelivery, reason, attempts, error};
  // What stands at the broker already can't be parked: sending it again is simply not done.
  const bool skip = core_.options.on_poison == OnPoison::skip || message.is_republished;
  (skip ? advance.skipped : advance.parked).push_back(given_up);
  this->advance(advance, false);
}

// --- time

void FencedLane::on_time() {
  if (!is_owned()) return;
  const Steady now = core_.now();
  const Steady limit = now - core_.options.publish_timeout;
  if (state_ == State::reading && asked_ <= limit) core_.session_failed = true;
  for (const InFlight& sent : flight_) {
    if (sent.answered) continue;
    if (sent.sent <= limit && core_.mutation == Mutation::mark_on_timeout) {
      on_answer({.request = sent.request, .kind = Answer::Kind::unknown});
      break;
    }
    if (sent.sent <= limit) core_.session_failed = true;
    break;
  }
  if (state_ == State::doubtful) ask();
}

Steady FencedLane::deadline() const {
  if (!is_owned()) return never;
  Steady earliest = is_backing_off() ? held_until() : never;
  if (state_ == State::reading) {
    earliest = std::min(earliest, asked_ + core_.options.publish_timeout);
  }
  for (const InFlight& sent : flight_) {
    if (sent.answered) continue;
    earliest = std::min(earliest, sent.sent + core_.options.publish_timeout);
    break;
  }
  return earliest;
}

std::string FencedLane::describe() const {
  static constexpr const char* names[] = {"doubtful", "reading", "ready", "settling"};
  return partition().label() + ' ' + names[static_cast<int>(state_)] + ", " +
         std::to_string(flight_.size()) + " in flight" + (is_backing_off() ? ", backing off" : "") +
         (is_trusted() ? "" : ", not trusted") + (is_draining() ? ", draining" : "");
}

}  // namespace stela::relay

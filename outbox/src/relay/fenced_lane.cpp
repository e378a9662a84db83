#include "relay/fenced_lane.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace stela::relay {
namespace {

/// After a sudden death this part of what was in flight goes at a time. A death costs a lease and a
/// process, a round trip next to nothing: so a killer is found in few deaths rather than few trips.
constexpr std::int64_t narrowing = 16;

}  // namespace

// --- ownership

void FencedLane::begin(const Standing& standing) {
  forget();
  published_through_ = standing.published_through;
  broker_sequence_ = standing.broker_sequence;
  broker_id_ = standing.broker_id;
  adopted_ = standing.adopted;
  adopting_ = false;
  look_back_ = {};
  lost_since_.reset();
  if (standing.unclean && standing.flight_count > 0) {
    suspects_ = standing.flight_count;
    suspects_window_ = static_cast<std::size_t>(std::max<std::int64_t>(suspects_ / narrowing, 1));
    if (suspects_ == 1) suspect_ = standing.flight_through;
  }
  doubt();
  ask();
}

void FencedLane::forget() {
  doubt();
  failure_.reset();
  suspects_ = 0;
  suspect_ = {};
  charged_.reset();
  fruitless_ = 0;
}

// --- publishing

std::size_t FencedLane::window() const noexcept {
  if (core_.fence == Fence::subject) return 1;
  // One message tells whether the trouble is over; a read-back would.
  if (!is_fenced() && is_in_trouble()) return 1;
  const auto window = static_cast<std::size_t>(core_.options.window);
  return suspects_ > 0 ? std::min(suspects_window_, window) : window;
}

BatchLimit FencedLane::wanted(int budget) const {
  const std::size_t open = flight_.size() - acknowledged_;
  const Steady now = core_.now();
  if (open >= window() || core_.is_full() || is_blocked()) return {};
  if (now >= look_again_ || now >= core_.step_end) return {};
  const auto room = static_cast<int>(window() - open);
  // A fetch costs a transaction: not for the few places that the last answers made free.
  if (open > 0 && room < std::min(core_.options.batch_size, core_.options.window / 2)) return {};
  const std::int64_t most_bytes = std::min(byte_window_.size() - bytes_, core_.room_for(bytes_));
  if (open > 0 && most_bytes < bytes_ / 2) return {};
  return {.messages = std::min({room, core_.options.batch_size, budget, wanted_}),
          .bytes = most_bytes};
}

void FencedLane::send(int& budget) {
  bool sent = false;
  // What was stored may have ended it.
  if (!is_fenced() && is_in_trouble()) mark_if_due();
  while (is_owned() && state_ == State::ready && !is_backing_off()) {
    const BatchLimit limit = wanted(budget);
    if (limit.messages <= 0) break;
    std::unique_ptr<PendingBatch> batch;
    if (!guarded_read([&] { batch = core_.store.next(partition(), cursor_, limit); })) break;
    cut(*batch);
    if (batch->messages.empty()) break;
    if (gave_up_killer(batch->messages.front())) continue;

    Advance note = progress(acknowledged_);
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
    move_behind(message);
  }
  return true;
}

void FencedLane::cut(PendingBatch& batch) {
  blocked_by_.reset();
  if (is_fenced()) return;
  std::unordered_set<std::int64_t> in_flight;
  for (const InFlight& sent : flight_) {
    if (!sent.answered) in_flight.insert(sent.message.stream);
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
  return blocked_by_ && std::any_of(flight_.begin(), flight_.end(), [&](const InFlight& sent) {
           return !sent.answered && sent.message.stream == *blocked_by_;
         });
}

/// What is sent again comes first in a batch, and what waits behind it.
void FencedLane::move_behind(const PendingMessage& message) {
  if (message.redelivery > 0) {
    cursor_.redelivery = message.redelivery;
  } else {
    cursor_.sequence = message.sequence;
  }
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

/// True if whoever sent this message died of it, so often that nobody shall send it any more.
bool FencedLane::gave_up_killer(const PendingMessage& message) {
  if (message.sequence != suspect_ || message.attempts < core_.options.max_attempts) return false;
  give_up(message, ParkedMessage::Reason::attempts, message.attempts,
          "workers died each time when they sent this message alone");
  return true;
}

/// As late as can be: whatever else holds the worker up and kills it is no fault of the message.
bool FencedLane::charge_suspect(const PendingMessage& message) {
  if (message.sequence != suspect_) return true;
  if (!note_attempts(message, message.attempts + 1,
                     "a worker died while it was publishing this message alone")) {
    return false;
  }
  suspect_ = {};
  charged_ = message;
  charged_->event = nullptr;
  return true;
}

/// Whoever lives once it is handed over takes the charge back: the message kills nobody.
void FencedLane::acquit_survived() {
  if (!charged_) return;
  const auto is_on_its_way = [&](const InFlight& sent) {
    return sent.message.sequence == charged_->sequence && !sent.answered;
  };
  if (std::none_of(flight_.begin(), flight_.end(), is_on_its_way)) return;
  // If that can't be noted now, the next pass tries again.
  if (note_attempts(*charged_, charged_->attempts, "")) charged_.reset();
}

bool FencedLane::note_attempts(const PendingMessage& message, int attempts, std::string error) {
  const Trouble trouble{
      .message = message, .message_attempts = attempts, .error = std::move(error)};
  bool noted = false;
  if (!guarded([&] { noted = core_.store.note(lease(), trouble); })) return false;
  if (!noted) lose("its epoch has passed");
  return noted;
}

void FencedLane::write_message_id(const EventId& id, const PendingMessage& message,
                                  std::string& text) {
  text = id.to_string();
  // What was stored once already must not be taken for its own duplicate.
  if (message.is_republished || message.was_lost) text += ".r" + std::to_string(message.redelivery);
}

void FencedLane::publish(const PendingMessage& message) {
  InFlight& sent = flight_.emplace_back();
  sent.request = core_.name_request(partition());
  sent.message = message;
  sent.message.event = nullptr;
  sent.event_id = message.event->id;
  sent.position = tail_position_ + 1;
  sent.bytes = static_cast<std::int64_t>(message.event->payload.size());
  sent.sent = core_.now();
  add_bytes(sent.bytes);

  write_message_id(sent.event_id, message, next_id_);
  std::optional<Predecessor> predecessor;
  if (is_fenced()) predecessor = Predecessor{tail_position_, tail_id_};
  std::optional<GenerationMark> generation;
  if (core_.fence == Fence::stream && message.generation.number > 1) {
    generation = message.generation;
  }
  const OutgoingMessage outgoing{.request = sent.request,
                                 .partition = partition(),
                                 .event = *message.event,
                                 .store_id = core_.store_id,
                                 .message_id = next_id_,
                                 .redelivery = message.redelivery,
                                 .previous = tail_,
                                 .predecessor = predecessor,
                                 .generation = generation};
  try {
    core_.publisher.publish(outgoing);
  } catch (const Error&) {
    // Whether it left is unknown, as after a disconnect.
    core_.session_failed = true;
  }
  tail_position_ = sent.position;
  std::swap(tail_id_, next_id_);
  tail_ = std::max(tail_, message.sequence);
}

// --- answers

FencedLane::InFlight* FencedLane::find(std::uint64_t request) noexcept {
  // Mostly it is the next one.
  if (acknowledged_ < flight_.size() && flight_[acknowledged_].request == request) {
    return &flight_[acknowledged_];
  }
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
  InFlight* const message = find(answer.request);
  if (message == nullptr || message->answered) return;
  message->answered = true;
  add_bytes(-message->bytes);
  const bool is_stored = answer.kind == Answer::Kind::stored ||
                         (!is_fenced() && answer.kind == Answer::Kind::stored_before);
  if (is_stored) {
    on_stored(*message, answer);
  } else {
    on_failure(*message, answer.kind, answer.detail);
  }
  if (state_ == State::settling) settle();
}

void FencedLane::on_stored(InFlight& message, const Answer& answer) {
  if (!is_fenced()) message.position = answer.broker_sequence;
  if (core_.fence == Fence::subject && answer.broker_sequence > message.position) {
    // Other subjects' messages stand between; the next one follows this one all the same.
    message.position = tail_position_ = answer.broker_sequence;
  }
  if (answer.broker_sequence != message.position) {
    return on_failure(message, Answer::Kind::stored_before, "stored at another place");
  }
  message.stored = true;
  byte_window_.on_stored(message.bytes, core_.now() - message.sent, core_.options.publish_timeout);
  while (acknowledged_ < flight_.size() && flight_[acknowledged_].stored) ++acknowledged_;
  // An answer that overtook another: what became of that one is unknown.
  const bool overtook =
      is_fenced() && (acknowledged_ == 0 || flight_[acknowledged_ - 1].request < message.request);
  if (state_ == State::ready && overtook) state_ = State::settling;
}

void FencedLane::on_failure(const InFlight& message, Answer::Kind kind, const std::string& detail) {
  if (kind == Answer::Kind::unknown) core_.session_doubted = true;
  if (state_ == State::ready) state_ = State::settling;
  if (failure_ && failure_->position <= message.position) return;
  failure_ = Failure{message.message, kind, detail, message.position};
}

void FencedLane::settle() {
  const bool all = std::all_of(flight_.begin(), flight_.end(),
                               [](const InFlight& sent) { return sent.answered; });
  if (!all || !mark_stored()) return;
  doubt();
  ask();
}

bool FencedLane::mark_stored() {
  if (is_fenced()) return true;
  const auto is_stored = [](const InFlight& sent) { return sent.stored; };
  if (std::none_of(flight_.begin(), flight_.end(), is_stored)) return true;
  // What can't be marked now is sent again, under the same ids.
  advance(progress(flight_.size()), false);
  return is_owned();
}

Advance FencedLane::progress(std::size_t count) const {
  Advance advance;
  bool extends = false;
  for (std::size_t i = 0; i < count; ++i) {
    const InFlight& sent = flight_[i];
    if (!sent.stored) {
      extends = false;
      continue;
    }
    auto& runs = advance.published;
    extends = extends && sent.message.redelivery == 0;
    if (!extends) {
      runs.push_back({.first = sent.message.sequence,
                      .redelivery = sent.message.redelivery,
                      .first_broker = sent.position});
    }
    runs.back().last = sent.message.sequence;
    runs.back().last_broker = sent.position;
    ++runs.back().count;
    extends = sent.message.redelivery == 0;
  }
  if (count > 0 && is_fenced()) {
    advance.broker_sequence = flight_[count - 1].position;
    write_message_id(flight_[count - 1].event_id, flight_[count - 1].message, advance.broker_id);
  }
  advance.flight_count = static_cast<std::int64_t>(flight_.size() - count);
  if (count < flight_.size()) advance.flight_through = flight_.back().message.sequence;
  return advance;
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
  for (const PublishedRun& run : advance.published) {
    past += run.count;
    if (run.redelivery == 0) published_through_ = std::max(published_through_, run.last);
  }
  suspects_ = std::max<std::int64_t>(suspects_ - past, 0);
  if (!advance.published.empty()) {
    flight_.drop_front(acknowledged_);
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
  if (advance(progress(acknowledged_), false)) recover();
}

// --- time

void FencedLane::on_time() {
  if (!is_owned()) return;
  const Steady now = core_.now();
  const Steady limit = now - core_.options.publish_timeout;
  if (state_ == State::reading && asked_ <= limit) miss("no answer to a read-back");
  for (InFlight& sent : flight_) {
    if (sent.answered) continue;
    if (sent.sent <= limit) miss(sent);
    break;
  }
  if (state_ == State::ready && flight_.empty() && now >= look_again_) doubt();
  if (state_ == State::doubtful && is_owned()) ask();
}

void FencedLane::miss(InFlight& message) {
  const std::string what = "no answer to a message";
  if (is_fenced()) return miss(what);
  on_silence(what);
  byte_window_.on_missed();
  message.answered = true;
  add_bytes(-message.bytes);
  on_failure(message, Answer::Kind::unknown, what);
  settle();
}

void FencedLane::miss(const std::string& what) {
  on_silence(what);
  byte_window_.on_missed();
  doubt();
  if (is_looking()) return end_look(Look::lost);
  // The first may have got lost.
  if (++fruitless_ <= 1) return;
  wait_with_failure();
  back_off(what);
}

Steady FencedLane::deadline() const {
  if (!is_owned()) return never;
  Steady earliest = is_backing_off() ? held_until() : never;
  if (state_ == State::ready && flight_.empty()) earliest = std::min(earliest, look_again_);
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

}  // namespace stela::relay

// How a fenced lane finds out where its partition stands at the broker, and what it then does about
// what went wrong.
#include "relay/fenced_lane.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace stela::relay {
namespace {

/// A message id is the event's id, with ".r<redelivery>" behind it for what was published before.
constexpr std::size_t event_id_size = 36;

/// So many lanes of a worker read back at a time, and of those that are in trouble half as many.
constexpr int most_reading = 64;

/// However well all goes, the stream is looked at so often.
constexpr auto look_interval = std::chrono::minutes{1};

/// The last message of the partition; 0 if there is none. A server that lost sight of a subject's
/// last message says that there is none, and has those before it.
std::uint64_t end_of(const Answer& answer) noexcept {
  const std::uint64_t found = answer.found.empty() ? 0 : answer.found.back().broker_sequence;
  return std::max(answer.last_sequence, found);
}

std::string extent_of(const Answer& answer, Fence fence) {
  const std::uint64_t last = end_of(answer);
  if (fence == Fence::subject && last == 0) {
    return "no message of its subject from there on: was the last one removed?";
  }
  if (last < answer.first_sequence || last == 0) return "nothing";
  return std::to_string(answer.first_sequence) + " to " + std::to_string(last);
}

std::string_view event_id_in(std::string_view message_id) noexcept {
  return message_id.substr(0, event_id_size);
}

}  // namespace

void FencedLane::doubt() {
  if (state_ == State::reading) --core_.reading;
  state_ = State::doubtful;
  // What was acknowledged and not marked is found again at the broker.
  flight_.clear();
  add_bytes(-bytes_);
  acknowledged_ = 0;
  cursor_ = {};
  tail_position_ = broker_sequence_;
  tail_id_ = broker_id_;
  tail_ = published_through_;
}

void FencedLane::add_bytes(std::int64_t bytes) noexcept {
  bytes_ += bytes;
  core_.bytes += bytes;
}

bool FencedLane::may_ask() const noexcept {
  return core_.reading < (is_in_trouble() ? most_reading / 2 : most_reading);
}

void FencedLane::ask() {
  if (core_.session == 0 || is_backing_off()) return;
  if (!is_fenced()) return resume({});
  if (!may_ask()) return;
  state_ = State::reading;
  ++core_.reading;
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
  if (!is_owned() || !mark_stored()) return;
  doubt();
  if (is_looking()) end_look(Look::lost);
}

bool FencedLane::has_aged_out(const Answer& answer) const {
  return core_.fence == Fence::subject && end_of(answer) == 0 &&
         broker_sequence_ < answer.first_sequence;
}

std::uint64_t FencedLane::lost_before(const Answer& answer) const {
  if (has_aged_out(answer)) return 0;
  if (end_of(answer) < broker_sequence_) return broker_sequence_ - end_of(answer);
  const bool is_another_stream =
      std::any_of(answer.found.begin(), answer.found.end(), [&](const FoundMessage& found) {
        return found.broker_sequence == broker_sequence_ && !broker_id_.empty() &&
               found.message_id != broker_id_;
      });
  return is_another_stream ? broker_sequence_ : 0;
}

std::optional<StopReason> FencedLane::contradiction(const Answer& answer) const {
  if (end_of(answer) < broker_sequence_ && !has_aged_out(answer)) return StopReason::broker_lost;
  std::uint64_t expected = broker_sequence_;
  bool has_position = false;
  for (const FoundMessage& found : answer.found) {
    if (found.broker_sequence == broker_sequence_) {
      has_position = true;
      // Without an id it was adopted, whoever sent it.
      if (!broker_id_.empty() && found.message_id != broker_id_) return StopReason::store_went_back;
      continue;
    }
    if (!found.is_ours || found.store_id != core_.store_id) return StopReason::foreign_writer;
    if (core_.fence == Fence::stream && found.broker_sequence != ++expected)
      return StopReason::unreadable;
    expected = found.broker_sequence;
    // The position is another subject's, and after it comes what was published before: another
    // history of the stream.
    const bool is_published = found.redelivery == 0 && found.sequence <= published_through_;
    if (core_.fence == Fence::subject && !has_position && is_published)
      return StopReason::store_went_back;
  }
  if (core_.fence == Fence::stream && expected != answer.last_sequence)
    return StopReason::unreadable;
  return {};
}

void FencedLane::on_read_back(const Answer& answer) {
  if (is_looking()) {
    doubt();
    const bool has_answered = answer.kind == Answer::Kind::read_back;
    if (!has_answered || contradiction(answer)) return end_look(Look::lost);
    // Nobody can tell what is gone of one subject among others.
    const bool is_whole = core_.fence == Fence::stream && answer.holes == 0;
    return end_look(is_whole ? Look::whole : Look::with_holes);
  }
  if (answer.kind == Answer::Kind::misconfigured) {
    doubt();
    wait_with_failure();
    return on_misfit(answer.detail);
  }
  if (answer.kind != Answer::Kind::read_back) return miss(answer.detail);
  // What was marked since the adoption began is as good as what is marked without one.
  if (adopting_ && end_of(answer) < broker_sequence_) adopted_ = adopting_ = false;
  if (adopted_) {
    if (adopt(answer)) resume(answer);
    return;
  }
  if (const auto reason = contradiction(answer)) return on_contradiction(*reason, answer);
  if (std::exchange(lost_since_, std::nullopt)) recover();
  if (!accept(answer)) return;
  if (!answer.has_more) return resume(answer);
  // What is published after a part of it would only be refused.
  doubt();
  ask();
}

bool FencedLane::passes_what_waits(const Answer& answer) {
  Cursor behind{.redelivery = std::numeric_limits<std::int64_t>::max()};
  for (const FoundMessage& found : answer.found) {
    if (found.broker_sequence == broker_sequence_ || found.redelivery > 0) continue;
    const auto next = core_.store.next(partition(), behind, {.messages = 1});
    if (next->messages.empty() || next->messages.front().sequence > found.sequence) continue;
    if (next->messages.front().sequence < found.sequence) return true;
    behind.sequence = found.sequence;
  }
  return false;
}

void FencedLane::on_contradiction(StopReason reason, const Answer& answer) {
  doubt();
  std::string what = "the partition was at broker sequence " + std::to_string(broker_sequence_) +
                     ", and the broker has " + extent_of(answer, core_.fence);
  if (reason != StopReason::broker_lost) return stop(reason, std::move(what));
  // A replica that was restarted and leads may tell what it had before it caught up.
  if (!lost_since_) lost_since_ = core_.now();
  if (core_.now() >= *lost_since_ + core_.options.publish_timeout) {
    return stop(reason, std::move(what));
  }
  wait_with_failure();
  back_off(std::move(what));
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
  bool passes = false;
  const bool is_known = guarded([&] {
    ids = core_.store.ids_of(sequences);
    // Positions tell what is missing between two messages, but not those of a shared stream.
    passes = core_.fence == Fence::subject && passes_what_waits(answer);
  });
  if (!is_known) {
    doubt();
    return false;
  }
  if (std::string missing = missing_in_store(answer, ids); !missing.empty()) {
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

std::string FencedLane::missing_in_store(const Answer& answer,
                                         const std::vector<EventId>& ids) const {
  const FoundMessage* first = nullptr;
  const FoundMessage* last = nullptr;
  std::int64_t count = 0;
  std::size_t at = 0;
  for (const FoundMessage& found : answer.found) {
    if (found.broker_sequence == broker_sequence_) continue;
    if (ids[at++].to_string() == event_id_in(found.message_id)) continue;
    if (first == nullptr) first = &found;
    last = &found;
    ++count;
  }
  if (count == 0) return {};
  const auto name = [](const FoundMessage& found) {
    return "event " + std::to_string(found.sequence.value()) + " as " + found.message_id;
  };
  if (count == 1 && !answer.has_more) {
    return "the broker has " + name(*first) + ", and the store doesn't";
  }
  return "the broker has " + std::string{answer.has_more ? "at least " : ""} +
         std::to_string(count) + " events that the store doesn't have: from " + name(*first) +
         " to " + name(*last);
}

bool FencedLane::adopt(const Answer& answer) {
  // An answer may hold a part of what stands there: the next one tells.
  const std::uint64_t end = end_of(answer);
  Advance advance{.broker_sequence = end, .lost = lost_before(answer)};
  std::vector<GlobalSequence> sequences;
  for (const FoundMessage& found : answer.found) sequences.push_back(found.sequence);
  std::vector<EventId> ids;
  if (!guarded([&] { ids = core_.store.ids_of(sequences); })) {
    doubt();
    return false;
  }
  if (!adopting_) advance.most_lost = most_lost(answer, advance.lost);
  if (advance.lost > 0) look_back_ = {.known_through = published_through_, .step = 1};
  const auto earlier = position_before(answer, ids);
  const bool is_whole = !earlier && !answer.has_more && end <= broker_sequence_;
  if (earlier) {
    advance.broker_sequence = earlier;
  } else {
    mark_ours(answer, ids, advance);
    look_back_.step = 0;
  }
  if (!this->advance(advance, false)) {
    doubt();
    return false;
  }
  drop_stored_failure(answer);
  adopting_ = !is_whole;
  if (is_whole) {
    adopted_ = false;
    return true;
  }
  doubt();
  ask();
  return false;
}

std::optional<std::uint64_t> FencedLane::most_lost(const Answer& answer, std::uint64_t lost) const {
  // Where an operator said that nothing stands there is nothing to compare with. And what a resize
  // moved here can be more than the partition ever published.
  if (broker_id_.empty() || end_of(answer) == 0) return std::nullopt;
  return lost;
}

void FencedLane::mark_ours(const Answer& answer, const std::vector<EventId>& ids,
                           Advance& advance) const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const FoundMessage& found = answer.found[i];
    if (found.broker_sequence == end_of(answer)) advance.broker_id = found.message_id;
    if (found.broker_sequence <= broker_sequence_ || was_known(found)) continue;
    if (!is_ours(found, ids[i])) continue;
    advance.published.push_back({found.sequence, found.sequence, 1, found.redelivery,
                                 found.broker_sequence, found.broker_sequence});
  }
}

bool FencedLane::is_ours(const FoundMessage& found, const EventId& id) const {
  return found.is_ours && found.store_id == core_.store_id &&
         id.to_string() == event_id_in(found.message_id);
}

bool FencedLane::was_known(const FoundMessage& found) const noexcept {
  return found.redelivery == 0 && found.sequence <= look_back_.known_through;
}

std::optional<std::uint64_t> FencedLane::position_before(const Answer& answer,
                                                         const std::vector<EventId>& ids) {
  const std::uint64_t end = end_of(answer);
  const std::uint64_t first = std::max<std::uint64_t>(answer.first_sequence, 1);
  if (look_back_.step == 0 || end < first || broker_sequence_ < first) return std::nullopt;
  if (ids.empty() && end < broker_sequence_) return end;
  std::uint64_t at = broker_sequence_;
  if (!ids.empty()) {
    const FoundMessage& found = answer.found.front();
    if (was_known(found) && is_ours(found, ids.front())) return std::nullopt;
    at = std::min(at, found.broker_sequence);
  }
  const std::uint64_t step = std::exchange(look_back_.step, 2 * look_back_.step);
  return at > first + step ? at - step : first - 1;
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
  state_ = State::ready;
  if (core_.fence == Fence::subject && answer.last_sequence == 0) {
    // The server compares with nothing, so do we.
    tail_position_ = 0;
    tail_id_.clear();
  }
  look_again_ = is_fenced() ? core_.now() + look_interval : never;
  if (failure_) return act_on(*std::exchange(failure_, std::nullopt));
  // Without a read-back the next message tells.
  if (is_fenced() && !misfit().empty()) recover();
}

void FencedLane::act_on(const Failure& failure) {
  core_.report(Incident::Kind::publish_failed, partition(), failure.message.sequence,
               failure.detail);
  switch (failure.kind) {
    case Answer::Kind::refused:
      return give_up(failure.message, ParkedMessage::Reason::refused, failure.message.attempts + 1,
                     failure.detail);
    case Answer::Kind::rejected: {
      charged_.reset();
      const int attempts = failure.message.attempts + 1;
      if (attempts >= core_.options.max_attempts) {
        return give_up(failure.message, ParkedMessage::Reason::attempts, attempts, failure.detail);
      }
      ++core_.counts.retried;
      return back_off(failure.detail, &failure.message, attempts);
    }
    case Answer::Kind::misconfigured:
      if (!failure.has_waited) on_misfit(failure.detail);
      return;
    case Answer::Kind::full:
      ++core_.counts.retried;
      if (!failure.has_waited) back_off(failure.detail);
      return;
    default:
      // Somebody else was there first, or nobody knows: the read-back has told. If it told nothing
      // twice in a row, don't ask as fast as we can.
      ++fruitless_;
      // A broker that was started again may have forgotten the id of its last message.
      tail_id_.clear();
      if (fruitless_ > 1 && !failure.has_waited) back_off(failure.detail);
  }
}

void FencedLane::give_up(const PendingMessage& message, ParkedMessage::Reason reason, int attempts,
                         const std::string& error) {
  if (core_.options.on_poison == OnPoison::stop) {
    return stop(StopReason::poison, "event " + std::to_string(message.sequence.value()) +
                                        " can't be published: " + error);
  }
  Advance advance;
  const ParkedMessage given_up{message.sequence, message.redelivery, reason, attempts, error};
  // What stands at the broker already can't be parked: sending it again is simply not done.
  const bool skip = core_.options.on_poison == OnPoison::skip || message.is_republished;
  (skip ? advance.skipped : advance.parked).push_back(given_up);
  this->advance(advance, false);
}

}  // namespace stela::relay

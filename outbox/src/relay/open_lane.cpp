#include "relay/open_lane.hpp"

#include "relay/backoff.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stela::relay {

void OpenLane::forget() {
  missed_ = 0;
  remove_if([](const Entry&) { return true; });
  streams_.clear();
  requests_.clear();
  ready_.clear();
  unread_.clear();
  held_.clear();
  cursor_ = {};
  stored_ = 0;
  bytes_in_flight_ = 0;
}

template <class Condition>
void OpenLane::remove_if(const Condition& is_done) {
  std::int64_t removed = 0;
  entries_.remove_if([&](const Entry& entry) {
    if (!is_done(entry)) return false;
    removed += entry.bytes();
    return true;
  });
  bytes_ -= removed;
  core_.bytes -= removed;
}

void OpenLane::land(Entry& entry) noexcept {
  entry.state = State::waiting;
  bytes_in_flight_ -= entry.bytes();
}

// --- sending

void OpenLane::send(int& budget) {
  bool sent = false;
  // What was stored may have ended it.
  if (is_in_trouble()) mark_if_due();
  // After trouble, one message tells whether it is over.
  const std::size_t window = is_in_trouble() ? 1 : static_cast<std::size_t>(core_.options.window);
  while (budget > 0 && requests_.size() < window && is_owned() && !core_.session_failed &&
         core_.now() < core_.step_end &&
         (requests_.empty() || bytes_in_flight_ < byte_window_.size())) {
    if (ready_.empty()) {
      if (is_backing_off()) break;
      if (!read_again() && (is_backing_off() || !fetch(is_in_trouble() ? 1 : budget))) break;
      continue;
    }
    Entry& entry = *ready_.front();
    ready_.pop_front();
    publish(entry);
    --budget;
    sent = true;
  }
  if (sent) core_.publisher.flush();
}

bool OpenLane::fetch(int budget) {
  // What waits behind slow streams is bounded, and so is memory.
  const auto most = static_cast<std::size_t>(core_.options.window) * 2;
  if (entries_.size() >= most) return false;
  if (!make_room()) return false;
  const BatchLimit limit{.messages = std::min({core_.options.batch_size, budget,
                                               static_cast<int>(most - entries_.size())}),
                         .bytes = core_.room_for(bytes_)};
  std::shared_ptr<const PendingBatch> batch;
  if (!guarded_read([&] { batch = core_.store.next(partition(), cursor_, limit); })) return false;
  if (batch->messages.empty()) return false;

  std::list<Entry> fetched;
  const Advance note = sort_out(batch, fetched);
  // The note makes the log durable before anything leaves, where that needs doing.
  if (!advance(note, !fetched.empty())) return false;
  for (const PendingMessage& message : batch->messages) {
    if (message.redelivery > 0) {
      cursor_.redelivery = message.redelivery;
    } else {
      cursor_.sequence = message.sequence;
    }
  }
  core_.counts.claimed += static_cast<std::int64_t>(fetched.size());
  for (Entry& entry : fetched) {
    bytes_ += entry.bytes();
    core_.bytes += entry.bytes();
    enqueue(entry);
  }
  // What others had claimed may come late, and a run of neighbours is marked as a range.
  entries_.merge(fetched, [](const Entry& a, const Entry& b) {
    const PendingMessage& m = a.message;
    const PendingMessage& n = b.message;
    return std::tuple{m.redelivery == 0, m.redelivery, m.sequence} <
           std::tuple{n.redelivery == 0, n.redelivery, n.sequence};
  });
  return true;
}

Advance OpenLane::sort_out(const std::shared_ptr<const PendingBatch>& batch,
                           std::list<Entry>& fetched) {
  Advance note = progress();
  for (const PendingMessage& message : batch->messages) {
    const bool unreadable = message.event == nullptr;
    const bool behind = message.is_behind_parked && !message.is_republished;
    if (!unreadable && !behind) {
      fetched.push_back({.message = message, .batch = batch});
      continue;
    }
    const auto reason = behind ? ParkedMessage::Reason::behind : ParkedMessage::Reason::refused;
    note.parked.push_back(
        {message.sequence, message.redelivery, reason, message.attempts, message.problem});
  }
  note.flight_count = static_cast<std::int64_t>(requests_.size() + fetched.size());
  if (!fetched.empty()) note.flight_through = fetched.back().message.sequence;
  return note;
}

void OpenLane::enqueue(Entry& entry) {
  const auto [stream, is_new] = streams_.try_emplace(entry.message.stream);
  if (!is_new) {
    Entry& previous = *std::exchange(stream->second.last, &entry);
    previous.behind = &entry;
    // It would keep the room that the one before needs to be read again.
    if (previous.message.event == nullptr) let_go(entry);
    return;
  }
  stream->second.first = stream->second.last = &entry;
  if (entry.message.backoff_left.count() > 0) {
    stream->second.held_until =
        core_.now() + std::min(entry.message.backoff_left, longest_backoff(core_.options));
    held_.push_back(entry.message.stream);
    let_go(entry);
  } else {
    queue_of(entry).push_back(&entry);
  }
}

void OpenLane::publish(Entry& entry) {
  const std::uint64_t request = core_.name_request(partition());
  entry.sent = core_.now();
  entry.state = State::in_flight;
  bytes_in_flight_ += entry.bytes();
  requests_.emplace(request, &entry);
  std::string id = entry.message.event->id.to_string();
  if (entry.message.is_republished || entry.message.was_lost) {
    id += ".r" + std::to_string(entry.message.redelivery);
  }
  const OutgoingMessage outgoing{.request = request,
                                 .partition = partition(),
                                 .event = *entry.message.event,
                                 .store_id = core_.store_id,
                                 .message_id = id,
                                 .redelivery = entry.message.redelivery};
  try {
    core_.publisher.publish(outgoing);
  } catch (const Error&) {
    core_.session_failed = true;
  }
}

// --- answers

void OpenLane::on_answer(const Answer& answer) {
  const auto found = requests_.find(answer.request);
  if (!is_owned() || found == requests_.end()) return;
  Entry& entry = *found->second;
  requests_.erase(found);
  land(entry);
  switch (answer.kind) {
    case Answer::Kind::stored:
    case Answer::Kind::stored_before:
      return on_stored(entry, answer);
    case Answer::Kind::refused:
      ++entry.message.attempts;
      return give_up(entry, ParkedMessage::Reason::refused, answer.detail);
    case Answer::Kind::rejected:
      return on_rejected(entry, answer.detail);
    case Answer::Kind::misconfigured:
      if (!is_backing_off()) on_misfit(answer.detail);
      break;
    case Answer::Kind::full:
      ++core_.counts.retried;
      core_.report(Incident::Kind::publish_failed, partition(), entry.message.sequence,
                   answer.detail);
      if (!is_backing_off()) back_off(answer.detail);
      break;
    default:
      miss(answer.detail);
  }
  if (is_owned()) ready_.push_front(&entry);
}

void OpenLane::miss(const std::string& what) {
  on_silence(what);
  byte_window_.on_missed();
  // The first may have got lost.
  if (++missed_ > 1 && !is_backing_off()) back_off(what);
}

void OpenLane::on_stored(Entry& entry, const Answer& answer) {
  entry.state = State::stored;
  byte_window_.on_stored(entry.bytes(), core_.now() - entry.sent, core_.options.publish_timeout);
  entry.broker_sequence = answer.broker_sequence;
  ++stored_;
  missed_ = 0;
  shift(entry);
}

void OpenLane::shift(Entry& entry) {
  const auto stream = streams_.find(entry.message.stream);
  Entry* const next = entry.behind;
  if (next == nullptr) {
    streams_.erase(stream);
    return;
  }
  stream->second.first = next;
  stream->second.held_until = {};
  queue_of(*next).push_back(next);
}

void OpenLane::on_rejected(Entry& entry, const std::string& error) {
  core_.report(Incident::Kind::publish_failed, partition(), entry.message.sequence, error);
  const int attempts = ++entry.message.attempts;
  if (attempts >= core_.options.max_attempts) {
    return give_up(entry, ParkedMessage::Reason::attempts, error);
  }
  ++core_.counts.retried;
  const auto wait = backoff(core_.options, attempts, core_.random);
  streams_.find(entry.message.stream)->second.held_until = core_.now() + wait;
  held_.push_back(entry.message.stream);
  for (Entry* waiting = &entry; waiting != nullptr; waiting = waiting->behind) let_go(*waiting);
  const Trouble trouble{.message = entry.message,
                        .message_attempts = attempts,
                        .message_backoff = wait,
                        .error = error};
  bool noted = false;
  if (guarded([&] { noted = core_.store.note(lease(), trouble); }) && !noted) {
    lose("its epoch has passed");
  }
}

void OpenLane::give_up(Entry& entry, ParkedMessage::Reason reason, const std::string& error) {
  if (core_.options.on_poison == OnPoison::halt) {
    // What was stored meanwhile needn't be sent again.
    if (stored_ > 0 && !advance(progress(), false) && !is_owned()) return;
    return stop(StopReason::poison, "event " + std::to_string(entry.message.sequence.value()) +
                                        " can't be published: " + error);
  }
  const bool skip = core_.options.on_poison == OnPoison::skip || entry.message.is_republished;
  Advance given_up = progress();
  (skip ? given_up.skipped : given_up.parked)
      .push_back({entry.message.sequence, entry.message.redelivery, reason, entry.message.attempts,
                  error});
  if (!skip) {
    for (const Entry* later = entry.behind; later != nullptr; later = later->behind) {
      // What was published already has passed, and is only sent once more.
      if (later->message.is_republished) continue;
      given_up.parked.push_back({later->message.sequence, later->message.redelivery,
                                 ParkedMessage::Reason::behind, later->message.attempts, ""});
    }
  }
  if (!advance(given_up, false)) {
    // Tried again when the store answers again.
    if (is_owned()) queue_of(entry).push_front(&entry);
    return;
  }
  const std::int64_t stream = entry.message.stream;
  if (skip) {
    shift(entry);
    remove_if([&](const Entry& other) { return &other == &entry; });
    return;
  }
  streams_.erase(stream);
  remove_if([&](const Entry& other) {
    return other.message.stream == stream && !other.message.is_republished;
  });
  for (Entry& left : entries_) {
    if (left.message.stream != stream) continue;
    left.behind = nullptr;
    enqueue(left);
  }
}

// --- marking

Advance OpenLane::progress() const {
  Advance advance;
  bool extends = false;
  for (const Entry& entry : entries_) {
    if (entry.state != State::stored) {
      extends = false;
      continue;
    }
    const PendingMessage& message = entry.message;
    // Nothing else of the partition stands between neighbours, so a run can be marked as a range.
    if (!extends || message.redelivery > 0) {
      advance.published.push_back({.first = message.sequence,
                                   .redelivery = message.redelivery,
                                   .first_broker = entry.broker_sequence});
    }
    PublishedRun& run = advance.published.back();
    run.last = message.sequence;
    run.last_broker = entry.broker_sequence;
    ++run.count;
    extends = message.redelivery == 0;
  }
  advance.flight_count = static_cast<std::int64_t>(requests_.size());
  return advance;
}

bool OpenLane::advance(const Advance& advance, bool durable) {
  bool noted = false;
  if (!guarded([&] { noted = core_.store.advance(lease(), advance, durable); })) return false;
  if (!noted) {
    lose("its epoch has passed");
    return false;
  }
  count(advance);
  remove_if([](const Entry& entry) { return entry.state == State::stored; });
  stored_ = 0;
  return true;
}

void OpenLane::mark_if_due() {
  if (!is_owned()) return;
  const bool is_due = requests_.empty() || stored_ >= core_.options.batch_size;
  if (stored_ > 0 && is_due && advance(progress(), false)) recover();
  // As long as the partition waits, the room is for others.
  if (is_in_trouble() && is_backing_off() && is_idle() && bytes_ > 0) let_go_of_all();
}

// --- time

void OpenLane::on_session_lost() {
  // Their fate is unknown: they are sent again, in order.
  requests_.clear();
  for (Entry& entry : entries_) {
    if (entry.state == State::in_flight) land(entry);
  }
  queue_all();
}

void OpenLane::on_time() {
  const Steady now = core_.now();
  std::erase_if(held_, [&](std::int64_t number) {
    const auto stream = streams_.find(number);
    if (stream == streams_.end()) return true;
    if (stream->second.held_until > now) return false;
    stream->second.held_until = {};
    queue_of(*stream->second.first).push_back(stream->second.first);
    return true;
  });
  while (is_owned() && !requests_.empty()) {
    Entry& oldest = *requests_.begin()->second;
    if (oldest.sent + core_.options.publish_timeout > now) return;
    requests_.erase(requests_.begin());
    land(oldest);
    ready_.push_front(&oldest);
    miss("no answer to a message");
  }
}

Steady OpenLane::deadline() const {
  if (!is_owned()) return never;
  Steady earliest = is_backing_off() ? held_until() : never;
  for (const std::int64_t number : held_) {
    const auto stream = streams_.find(number);
    if (stream != streams_.end()) earliest = std::min(earliest, stream->second.held_until);
  }
  if (!requests_.empty()) {
    const Steady oldest = requests_.begin()->second->sent;
    earliest = std::min(earliest, oldest + core_.options.publish_timeout);
  }
  return earliest;
}

}  // namespace stela::relay

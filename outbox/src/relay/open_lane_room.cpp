// How a lane without a fence lets go of payloads that have to wait, and reads them again.
#include "relay/open_lane.hpp"

#include <utility>

namespace stela::relay {

std::int64_t OpenLane::Entry::bytes() const noexcept {
  return message.event == nullptr ? 0 : static_cast<std::int64_t>(message.event->payload.size());
}

void OpenLane::let_go(Entry& entry) noexcept {
  bytes_ -= entry.bytes();
  core_.bytes -= entry.bytes();
  entry.message.event = nullptr;
  entry.batch.reset();
}

void OpenLane::let_go_of_all() {
  for (Entry& entry : entries_) let_go(entry);
  queue_all();
}

void OpenLane::queue_all() {
  ready_.clear();
  unread_.clear();
  for (Entry& entry : entries_) {
    if (entry.state != State::waiting) continue;
    const Stream& stream = streams_.find(entry.message.stream)->second;
    if (stream.first == &entry && stream.held_until == Steady{}) queue_of(entry).push_back(&entry);
  }
}

std::deque<OpenLane::Entry*>& OpenLane::queue_of(const Entry& entry) noexcept {
  return entry.message.event == nullptr ? unread_ : ready_;
}

bool OpenLane::has_room() const noexcept {
  return !core_.is_full() && (bytes_ == 0 || core_.room_for(bytes_) > 0);
}

bool OpenLane::make_room() {
  if (!has_room() && stored_ > 0 && !advance(progress(), false)) return false;
  return has_room();
}

bool OpenLane::read_again() {
  if (unread_.empty() || !make_room()) return false;
  Entry& entry = *unread_.front();
  std::shared_ptr<const PendingBatch> batch;
  if (!guarded([&] { batch = core_.store.read_again(entry.message); })) return false;
  unread_.pop_front();
  const PendingMessage& read = batch->messages.front();
  if (read.event == nullptr) {
    give_up(entry, ParkedMessage::Reason::refused, read.problem);
    return is_owned();
  }
  entry.message.event = read.event;
  entry.batch = std::move(batch);
  bytes_ += entry.bytes();
  core_.bytes += entry.bytes();
  ready_.push_back(&entry);
  return true;
}

}  // namespace stela::relay

#include "relay/chain.hpp"

#include <algorithm>
#include <utility>

namespace stela::relay {
namespace {

std::string message_id_of(const EventId& id, const PendingMessage& message) {
  std::string text = id.to_string();
  // A message that was stored before must not be taken for its own duplicate.
  if (message.is_republished || message.was_lost) text += ".r" + std::to_string(message.redelivery);
  return text;
}

}  // namespace

void Chain::start(Position position) {
  position_ = std::move(position);
  clear();
}

void Chain::clear() {
  // Acknowledged but unmarked messages will be found again at the broker.
  links_.clear();
  add_bytes(-bytes_);
  acknowledged_ = 0;
  cursor_ = {};
  tail_ = position_;
}

OutgoingMessage Chain::append(const PendingMessage& message, PartitionId partition) {
  Link& link = links_.emplace_back();
  link.request = core_.name_request(partition);
  link.message = message;
  link.message.event = nullptr;
  link.event_id = message.event->id;
  link.position = tail_.broker_sequence + 1;
  link.bytes = static_cast<std::int64_t>(message.event->payload.size());
  link.sent = core_.now();
  add_bytes(link.bytes);
  // Redeliveries come first in a batch.
  if (message.redelivery > 0) {
    cursor_.redelivery = message.redelivery;
  } else {
    cursor_.sequence = message.sequence;
  }

  previous_id_ = std::exchange(tail_.message_id, message_id_of(link.event_id, message));
  OutgoingMessage outgoing{.request = link.request,
                           .partition = partition,
                           .event = *message.event,
                           .store_id = core_.store_id,
                           .message_id = tail_.message_id,
                           .redelivery = message.redelivery,
                           .previous = tail_.published_through};
  if (core_.fence != Fence::none) {
    outgoing.predecessor = Predecessor{tail_.broker_sequence, previous_id_};
  }
  if (core_.fence == Fence::stream && message.generation.number > 1) {
    outgoing.generation = message.generation;
  }
  tail_.broker_sequence = link.position;
  tail_.published_through = std::max(tail_.published_through, message.sequence);
  return outgoing;
}

const Chain::Link* Chain::first_unanswered() const noexcept {
  const auto acknowledged = static_cast<std::ptrdiff_t>(acknowledged_);
  const auto first = std::find_if(links_.begin() + acknowledged, links_.end(),
                                  [](const Link& link) { return !link.is_answered; });
  return first == links_.end() ? nullptr : &*first;
}

Chain::Link* Chain::find(std::uint64_t request) noexcept {
  // Usually it is the next one.
  if (acknowledged_ < links_.size() && links_[acknowledged_].request == request) {
    return &links_[acknowledged_];
  }
  // Request numbers rise in the order of sending.
  const auto found =
      std::lower_bound(links_.begin(), links_.end(), request,
                       [](const Link& link, std::uint64_t r) { return link.request < r; });
  return found != links_.end() && found->request == request ? &*found : nullptr;
}

std::int64_t Chain::room() const noexcept {
  return std::min(byte_window_.size() - bytes_, core_.room_for(bytes_));
}

void Chain::add_bytes(std::int64_t bytes) noexcept {
  bytes_ += bytes;
  core_.bytes += bytes;
}

void Chain::answer(Link& link) noexcept {
  link.is_answered = true;
  add_bytes(-link.bytes);
}

bool Chain::store(Link& link, std::uint64_t broker_sequence) {
  if (core_.fence == Fence::none) link.position = broker_sequence;
  if (core_.fence == Fence::subject && broker_sequence > link.position) {
    // Messages of other subjects may lie between; the next one follows this one regardless.
    link.position = tail_.broker_sequence = broker_sequence;
  }
  if (broker_sequence != link.position) return false;
  link.is_stored = true;
  byte_window_.on_stored(link.bytes, core_.now() - link.sent, core_.options.publish_timeout);
  while (acknowledged_ < links_.size() && links_[acknowledged_].is_stored) ++acknowledged_;
  return true;
}

Advance Chain::stored_of_first(std::size_t count) const {
  Advance advance;
  auto& runs = advance.published;
  bool extends = false;
  for (std::size_t i = 0; i < count; ++i) {
    const Link& link = links_[i];
    const std::int64_t redelivery = link.message.redelivery;
    if (link.is_stored) {
      if (!extends || redelivery > 0) {
        runs.push_back({.first = link.message.sequence,
                        .redelivery = redelivery,
                        .first_broker = link.position});
      }
      runs.back().last = link.message.sequence;
      runs.back().last_broker = link.position;
      ++runs.back().count;
    }
    extends = link.is_stored && redelivery == 0;
  }
  if (count > 0 && core_.fence != Fence::none) {
    const Link& last = links_[count - 1];
    advance.broker_sequence = last.position;
    advance.broker_id = message_id_of(last.event_id, last.message);
  }
  advance.flight_count = static_cast<std::int64_t>(links_.size() - count);
  if (count < links_.size()) advance.flight_through = links_.back().message.sequence;
  return advance;
}

void Chain::advance(const Advance& advance) {
  for (const PublishedRun& run : advance.published) {
    if (run.redelivery > 0) continue;
    position_.published_through = std::max(position_.published_through, run.last);
  }
  if (!advance.published.empty()) {
    links_.erase(links_.begin(), links_.begin() + static_cast<std::ptrdiff_t>(acknowledged_));
    acknowledged_ = 0;
  }
  if (!advance.broker_sequence) return;
  position_.broker_sequence = *advance.broker_sequence;
  position_.message_id = advance.broker_id;
}

}  // namespace stela::relay

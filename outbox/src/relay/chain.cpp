#include "relay/chain.hpp"

#include <algorithm>
#include <utility>

namespace stela::relay {
namespace {

void write_message_id(const EventId& id, const PendingMessage& message, std::string& text) {
  text = id.to_string();
  // What was stored once already must not be taken for its own duplicate.
  if (message.is_republished || message.was_lost) text += ".r" + std::to_string(message.redelivery);
}

bool is_unanswered(const Chain::Link& link) noexcept {
  return !link.is_answered;
}

}  // namespace

void Chain::start(Position position) {
  position_ = std::move(position);
  clear();
}

void Chain::clear() {
  // What was acknowledged and not marked is found again at the broker.
  links_.clear();
  add_bytes(-bytes_);
  acknowledged_ = 0;
  cursor_ = {};
  tail_ = position_;
}

/// What is sent again comes first in a batch, and what waits behind it.
void Chain::move_behind(const PendingMessage& message) noexcept {
  if (message.redelivery > 0) {
    cursor_.redelivery = message.redelivery;
  } else {
    cursor_.sequence = message.sequence;
  }
}

Chain::Names Chain::append(const PendingMessage& message, std::uint64_t request) {
  Link& link = links_.emplace_back();
  link.request = request;
  link.message = message;
  link.message.event = nullptr;
  link.event_id = message.event->id;
  link.position = tail_.broker_sequence + 1;
  link.bytes = static_cast<std::int64_t>(message.event->payload.size());
  link.sent = core_.now();
  add_bytes(link.bytes);

  std::swap(previous_id_, tail_.message_id);
  write_message_id(link.event_id, message, tail_.message_id);
  Names names{.message_id = tail_.message_id, .previous = tail_.published_through};
  if (core_.fence != Fence::none) {
    names.predecessor = Predecessor{tail_.broker_sequence, previous_id_};
  }
  tail_.broker_sequence = link.position;
  tail_.published_through = std::max(tail_.published_through, message.sequence);
  return names;
}

void Chain::follow_nothing() noexcept {
  tail_.broker_sequence = 0;
  tail_.message_id.clear();
}

Chain::Link* Chain::first_unanswered() noexcept {
  const auto first = std::find_if(links_.begin(), links_.end(), is_unanswered);
  return first == links_.end() ? nullptr : &*first;
}

Steady Chain::waiting_since() const noexcept {
  const auto first = std::find_if(links_.begin(), links_.end(), is_unanswered);
  return first == links_.end() ? never : first->sent;
}

Chain::Link* Chain::find(std::uint64_t request) noexcept {
  // Mostly it is the next one.
  if (acknowledged_ < links_.size() && links_[acknowledged_].request == request) {
    return &links_[acknowledged_];
  }
  // Requests are numbered in the order in which they were sent.
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
    // Other subjects' messages stand between; the next one follows this one all the same.
    link.position = tail_.broker_sequence = broker_sequence;
  }
  if (broker_sequence != link.position) return false;
  link.is_stored = true;
  byte_window_.on_stored(link.bytes, core_.now() - link.sent, core_.options.publish_timeout);
  while (acknowledged_ < links_.size() && links_[acknowledged_].is_stored) ++acknowledged_;
  return true;
}

bool Chain::is_acknowledged(const Link& link) const noexcept {
  return acknowledged_ > 0 && links_[acknowledged_ - 1].request >= link.request;
}

Advance Chain::stored_of_first(std::size_t count) const {
  Advance advance;
  bool extends = false;
  for (std::size_t i = 0; i < count; ++i) {
    const Link& link = links_[i];
    if (!link.is_stored) {
      extends = false;
      continue;
    }
    auto& runs = advance.published;
    extends = extends && link.message.redelivery == 0;
    if (!extends) {
      runs.push_back({.first = link.message.sequence,
                      .redelivery = link.message.redelivery,
                      .first_broker = link.position});
    }
    runs.back().last = link.message.sequence;
    runs.back().last_broker = link.position;
    ++runs.back().count;
    extends = link.message.redelivery == 0;
  }
  if (count > 0 && core_.fence != Fence::none) {
    advance.broker_sequence = links_[count - 1].position;
    write_message_id(links_[count - 1].event_id, links_[count - 1].message, advance.broker_id);
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
    links_.drop_front(acknowledged_);
    acknowledged_ = 0;
  }
  if (!advance.broker_sequence) return;
  position_.broker_sequence = *advance.broker_sequence;
  position_.message_id = advance.broker_id;
}

}  // namespace stela::relay

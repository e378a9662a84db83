#include "simulation/jetstream_model.hpp"

#include <algorithm>

namespace stela::sim {

PublishResult JetStreamModel::publish(const Sent& message, Time now) {
  forget_old(now);
  if (message.size > limits_.max_message_size) return {.error = StreamError::too_large};
  if (limits_.duplicates_first) {
    if (const auto duplicate = find_duplicate(message, now)) return *duplicate;
  }
  if (const auto wrong = check_sequence(message)) return *wrong;
  if (!limits_.duplicates_first) {
    if (const auto duplicate = find_duplicate(message, now)) return *duplicate;
  }
  if (!message.expected_last_id.empty() && message.expected_last_id != last_id_) {
    return {.error = StreamError::wrong_last_id};
  }
  if (messages_.size() >= limits_.max_messages) return {.error = StreamError::full};

  const std::uint64_t sequence = last_sequence() + 1;
  messages_.push_back({sequence, now, false, message});
  last_id_ = message.id;
  last_by_subject_[message.subject] = sequence;
  if (!message.id.empty()) {
    ids_[message.id] = sequence;
    ids_by_age_.emplace_back(now, message.id);
  }
  return {.sequence = sequence};
}

std::optional<PublishResult> JetStreamModel::find_duplicate(const Sent& message, Time) {
  const auto known = ids_.find(message.id);
  if (message.id.empty() || known == ids_.end()) return std::nullopt;
  return PublishResult{.sequence = known->second, .duplicate = true};
}

std::optional<PublishResult> JetStreamModel::check_sequence(const Sent& message) const {
  if (message.expected_last_subject_sequence) {
    const Stored* const last = last_of(message.subject);
    if (*message.expected_last_subject_sequence != (last != nullptr ? last->sequence : 0)) {
      return PublishResult{.error = StreamError::wrong_last_sequence};
    }
  }
  if (message.expected_last_sequence && *message.expected_last_sequence != last_sequence()) {
    return PublishResult{.error = StreamError::wrong_last_sequence};
  }
  return std::nullopt;
}

void JetStreamModel::forget_old(Time now) {
  // The window runs from the first storing, and a duplicate doesn't renew it.
  while (!ids_by_age_.empty() && ids_by_age_.front().first + limits_.duplicate_window <= now) {
    ids_.erase(ids_by_age_.front().second);
    ids_by_age_.pop_front();
  }
}

const Stored* JetStreamModel::find(std::uint64_t sequence) const noexcept {
  if (sequence < first_ || sequence > last_sequence()) return nullptr;
  const Stored& stored = messages_[sequence - first_];
  return stored.deleted ? nullptr : &stored;
}

const Stored* JetStreamModel::last_of(std::string_view subject) const noexcept {
  const auto last = last_by_subject_.find(std::string{subject});
  if (last == last_by_subject_.end()) return nullptr;
  for (std::uint64_t at = last->second; at >= first_; --at) {
    const Stored* const stored = find(at);
    if (stored != nullptr && stored->message.subject == subject) return stored;
  }
  return nullptr;
}

void JetStreamModel::restart(Time now) {
  ids_.clear();
  ids_by_age_.clear();
  last_id_.clear();
  for (const Stored& stored : messages_) {
    if (stored.deleted || stored.at + limits_.duplicate_window <= now) continue;
    if (stored.message.id.empty()) continue;
    ids_[stored.message.id] = stored.sequence;
    ids_by_age_.emplace_back(stored.at, stored.message.id);
    if (stored.sequence == last_sequence()) last_id_ = stored.message.id;
  }
}

void JetStreamModel::purge_before(std::uint64_t sequence) {
  while (!messages_.empty() && first_ < sequence) {
    messages_.pop_front();
    ++first_;
  }
}

void JetStreamModel::erase(std::uint64_t sequence) {
  if (sequence >= first_ && sequence <= last_sequence())
    messages_[sequence - first_].deleted = true;
}

void JetStreamModel::lose_tail(std::size_t count) {
  for (std::size_t i = 0; i < count && !messages_.empty(); ++i) messages_.pop_back();
  last_id_.clear();
  for (auto& [subject, last] : last_by_subject_) last = std::min(last, last_sequence());
}

}  // namespace stela::sim

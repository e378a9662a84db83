#include "older_streams.hpp"

#include <algorithm>

namespace stela::nats {

namespace {

/// How often is looked whether a stream that is waited for was emptied or removed.
constexpr std::chrono::seconds question_interval{1};

}  // namespace

bool OlderStreams::are_done_before(const ReceivedEvent& event) const {
  if (event.generation.number <= 1) return true;
  const auto done = done_.find(event.store_id);
  return done != done_.end() && done->second >= event.generation.number;
}

std::string OlderStreams::look(const ReceivedEvent& event, MessageSource& source, Steady now) {
  const std::pair key{event.store_id, event.generation.number};
  if (std::exchange(awaited_, key) != key) ends_.clear();
  const bool ask_again = now >= next_question_;
  if (ask_again) next_question_ = now + question_interval;
  std::string left;
  const std::int64_t first = event.generation.first.value();
  const bool was_met = reader_.highest_of(event.store_id) >= first;
  for (const OtherReader& other : reader_.others(event.store_id)) {
    const bool has_come_to_it =
        was_met || other.waits_at >= event.generation.number || other.highest >= first;
    if (has_come_to_it) continue;
    const std::uint64_t end = end_of(other, source, ask_again);
    if (other.position >= end) continue;
    left += " '" + other.stream + "' up to " + std::to_string(end);
  }
  if (!left.empty()) return left;
  std::int64_t& done = done_[event.store_id];
  done = std::max(done, event.generation.number);
  return {};
}

std::uint64_t OlderStreams::end_of(const OtherReader& other, MessageSource& source,
                                   bool ask_again) {
  const auto known = ends_.find(other.stream);
  if (known != ends_.end() && !ask_again) return known->second;
  const std::uint64_t now = source.end_of(other.stream, other.filter).value_or(0);
  std::uint64_t& end = ends_.try_emplace(other.stream, now).first->second;
  end = std::min(end, now);
  return end;
}

}  // namespace stela::nats

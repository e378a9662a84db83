#include "older_streams.hpp"

#include <algorithm>

namespace stela::nats {

namespace {

/// How often an awaited stream is checked for having been emptied or removed.
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
    if (is_at_its_end(other, source, ask_again)) continue;
    left += " '" + other.stream + "' up to " + std::to_string(ends_.at(other.stream));
  }
  if (!left.empty()) return left;
  std::int64_t& done = done_[event.store_id];
  done = std::max(done, event.generation.number);
  return {};
}

bool OlderStreams::is_at_its_end(const OtherReader& other, MessageSource& source, bool ask_again) {
  auto end = ends_.find(other.stream);
  if (end == ends_.end()) end = ends_.emplace(other.stream, source.last_of(other.stream)).first;
  if (other.position >= end->second) return true;
  if (!ask_again) return false;
  // Messages that a filter excludes or that were removed never reach the reader.
  const auto next = source.next_after(other.stream, other.filter, other.position);
  if (next && *next <= end->second) return false;
  end->second = other.position;
  return true;
}

}  // namespace stela::nats

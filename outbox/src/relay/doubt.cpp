#include "relay/doubt.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>

namespace stela::relay {
namespace {

/// A message id is the event's id, with ".r<redelivery>" behind it for what was published before.
constexpr std::size_t event_id_size = 36;

/// So many lanes of a worker read back at a time, and of those that are in trouble half as many.
constexpr int most_asking = 64;

/// However well all goes, the stream is looked at so often.
constexpr auto look_interval = std::chrono::minutes{1};

bool has_aged_out(const Position& position, const Answer& answer, Fence fence) noexcept {
  return fence == Fence::subject && position.broker_sequence > 0 && end_of(answer) == 0 &&
         position.broker_sequence < answer.first_sequence;
}

/// Positions tell what is missing between two messages, but not those of a shared stream.
std::optional<StopReason> judge_stream(const Position& position, const Answer& answer,
                                       const Verdict& verdict, std::string_view store_id) noexcept {
  std::uint64_t expected = position.broker_sequence;
  for (const FoundMessage& found : verdict.following) {
    if (!found.is_ours || found.store_id != store_id) return StopReason::foreign_writer;
    if (found.broker_sequence != ++expected) return StopReason::unreadable;
  }
  if (expected != answer.last_sequence) return StopReason::unreadable;
  return std::nullopt;
}

std::optional<StopReason> judge_subject(const Position& position, const Verdict& verdict,
                                        std::string_view store_id) noexcept {
  for (const FoundMessage& found : verdict.following) {
    if (!found.is_ours || found.store_id != store_id) return StopReason::foreign_writer;
    // The position is another subject's, and after it comes what was published before: another
    // history of the stream.
    const bool is_published = found.redelivery == 0 && found.sequence <= position.published_through;
    if (verdict.place == nullptr && is_published) return StopReason::store_went_back;
  }
  return std::nullopt;
}

std::string extent_of(const Answer& answer, Fence fence) {
  const std::uint64_t last = end_of(answer);
  if (fence == Fence::subject && last == 0) {
    return "no message of its subject from there on: was the last one removed?";
  }
  if (last < answer.first_sequence || last == 0) return "nothing";
  return std::to_string(answer.first_sequence) + " to " + std::to_string(last);
}

std::string name_of(const FoundMessage& found) {
  return "event " + std::to_string(found.sequence.value()) + " as " + found.message_id;
}

}  // namespace

Verdict compare(const Position& position, const Answer& answer, Fence fence,
                std::string_view store_id) noexcept {
  Verdict verdict;
  if (has_aged_out(position, answer, fence)) return verdict;
  const auto& found = answer.found;
  const auto after = std::find_if(found.begin(), found.end(), [&](const FoundMessage& message) {
    return message.broker_sequence > position.broker_sequence;
  });
  const std::uint64_t at = std::min(position.broker_sequence, end_of(answer));
  if (after != found.begin() && std::prev(after)->broker_sequence == at) {
    verdict.place = &*std::prev(after);
  }
  verdict.following = {after, found.end()};
  const std::string& id = position.message_id;
  const bool is_lost = at < position.broker_sequence;
  verdict.is_displaced =
      is_lost || (verdict.place != nullptr && !id.empty() && verdict.place->message_id != id);
  if (verdict.is_displaced) {
    verdict.stop = is_lost ? StopReason::broker_lost : StopReason::store_went_back;
  } else {
    verdict.stop = fence == Fence::stream ? judge_stream(position, answer, verdict, store_id)
                                          : judge_subject(position, verdict, store_id);
  }
  return verdict;
}

std::uint64_t end_of(const Answer& answer) noexcept {
  const std::uint64_t found = answer.found.empty() ? 0 : answer.found.back().broker_sequence;
  return std::max(answer.last_sequence, found);
}

std::string describe(const Position& position, const Answer& answer, Fence fence) {
  return "the partition was at broker sequence " + std::to_string(position.broker_sequence) +
         ", and the broker has " + extent_of(answer, fence);
}

std::string describe_loss(const Position& position, const Answer& answer, PartitionId partition,
                          bool has_last) {
  const std::string label = partition.label();
  const std::string adopt = "If it is gone for good, 'outbox partitions adopt " + label +
                            "' continues without it, and after that 'outbox ";
  const bool is_told = has_last && answer.found.back().redelivery == 0;
  if (end_of(answer) > 0 && !is_told) {
    return "; its last message doesn't tell what is missing. " + adopt +
           "reconcile --against-broker' looks for it and sends it again";
  }
  const std::int64_t last = is_told ? answer.found.back().sequence.value() : 0;
  const std::string from = std::to_string(last + 1);
  const std::string to = std::to_string(position.published_through.value());
  return "; missing is what was published of events " + from + " to " + to + ". " + adopt +
         "republish --from " + from + " --to " + to + " --partition " + label + "' sends it again";
}

bool carries(const FoundMessage& found, const EventId& id) {
  return id.to_string() == std::string_view{found.message_id}.substr(0, event_id_size);
}

std::string missing_in_store(std::span<const FoundMessage> messages,
                             const std::vector<EventId>& ids, bool has_more) {
  const FoundMessage* first = nullptr;
  const FoundMessage* last = nullptr;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (carries(messages[i], ids[i])) continue;
    if (first == nullptr) first = &messages[i];
    last = &messages[i];
    ++count;
  }
  if (count == 0) return {};
  if (count == 1 && !has_more) {
    return "the broker has " + name_of(*first) + ", and the store doesn't";
  }
  return "the broker has " + std::string{has_more ? "at least " : ""} + std::to_string(count) +
         " events that the store doesn't have: from " + name_of(*first) + " to " + name_of(*last);
}

void Doubt::start() noexcept {
  begin();
  fruitless_ = 0;
  lost_since_.reset();
}

void Doubt::begin() noexcept {
  if (is_asked()) --core_.reading;
  state_ = State::unasked;
}

void Doubt::announce() noexcept {
  if (is_over()) state_ = State::announced;
}

void Doubt::end() {
  begin();
  state_ = State::over;
  look_again_ = core_.fence == Fence::none ? never : core_.now() + look_interval;
}

bool Doubt::may_ask(bool is_in_trouble) const noexcept {
  return core_.reading < (is_in_trouble ? most_asking / 2 : most_asking);
}

std::uint64_t Doubt::ask(PartitionId partition) {
  state_ = State::asked;
  ++core_.reading;
  ++core_.counts.read_backs;
  asked_at_ = core_.now();
  return request_ = core_.name_request(partition);
}

/// A replica that was restarted and leads may tell what it had before it caught up.
bool Doubt::is_lost_for_good() {
  if (!lost_since_) lost_since_ = core_.now();
  return core_.now() >= *lost_since_ + core_.options.publish_timeout;
}

}  // namespace stela::relay

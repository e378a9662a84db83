#include "relay/doubt.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>

namespace stela::relay {
namespace {

/// How many lanes of a worker read back at once. Lanes in trouble may use half of them.
constexpr int most_asking = 64;

/// How often the stream is checked even if nothing is wrong.
constexpr auto look_interval = std::chrono::minutes{1};

std::optional<StopReason> judge(const Position& position, const Answer& answer,
                                const Verdict& verdict, Fence fence,
                                std::string_view store_id) noexcept {
  // Positions reveal missing messages, except in a shared stream.
  const bool is_counted = fence == Fence::stream;
  std::uint64_t expected = position.broker_sequence;
  for (const FoundMessage& found : verdict.following) {
    if (!found.is_ours || found.store_id != store_id) return StopReason::foreign_writer;
    if (is_counted && found.broker_sequence != ++expected) return StopReason::unreadable;
    // Another subject's message is in the position's place, and published messages come after it:
    // the stream has another history.
    const bool is_published = found.redelivery == 0 && found.sequence <= position.published_through;
    if (!is_counted && verdict.place == nullptr && is_published) return StopReason::store_went_back;
  }
  if (is_counted && expected != answer.last_sequence) return StopReason::unreadable;
  return std::nullopt;
}

std::string name_of(const FoundMessage& found) {
  return "event " + std::to_string(found.sequence.value()) + " as " + found.message_id;
}

}  // namespace

Verdict compare(const Position& position, const Answer& answer, Fence fence,
                std::string_view store_id) noexcept {
  Verdict verdict;
  // The shared stream has dropped all messages of this partition.
  if (fence == Fence::subject && position.broker_sequence > 0 && end_of(answer) == 0 &&
      position.broker_sequence < answer.first_sequence) {
    return verdict;
  }
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
    verdict.stop = judge(position, answer, verdict, fence, store_id);
  }
  return verdict;
}

std::uint64_t end_of(const Answer& answer) noexcept {
  const std::uint64_t found = answer.found.empty() ? 0 : answer.found.back().broker_sequence;
  return std::max(answer.last_sequence, found);
}

std::string describe(const Position& position, const Answer& answer, Fence fence) {
  const std::uint64_t last = end_of(answer);
  std::string extent = "nothing";
  if (fence == Fence::subject && last == 0) {
    extent = "no message of its subject from there on: was the last one removed?";
  } else if (last > 0 && last >= answer.first_sequence) {
    extent = std::to_string(answer.first_sequence) + " to " + std::to_string(last);
  }
  return "the partition was at broker sequence " + std::to_string(position.broker_sequence) +
         ", and the broker has " + extent;
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
  // ".r<redelivery>" follows if the message had been published before.
  return found.message_id.starts_with(id.to_string());
}

std::string missing_in_store(std::span<const FoundMessage> messages,
                             const std::vector<EventId>& ids, bool has_more) {
  std::vector<const FoundMessage*> missing;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!carries(messages[i], ids[i])) missing.push_back(&messages[i]);
  }
  if (missing.empty()) return {};
  const std::string first = name_of(*missing.front());
  if (missing.size() == 1 && !has_more)
    return "the broker has " + first + ", and the store doesn't";
  return "the broker has " + std::string{has_more ? "at least " : ""} +
         std::to_string(missing.size()) + " events that the store doesn't have: from " + first +
         " to " + name_of(*missing.back());
}

void Doubt::begin() noexcept {
  if (is_asked()) --core_->reading;
  state_ = State::unasked;
}

void Doubt::end() {
  begin();
  state_ = State::over;
  look_again_ = core_->fence == Fence::none ? never : core_->now() + look_interval;
}

bool Doubt::may_ask(bool is_in_trouble) const noexcept {
  return core_->reading < (is_in_trouble ? most_asking / 2 : most_asking);
}

std::uint64_t Doubt::ask(PartitionId partition) {
  state_ = State::asked;
  ++core_->reading;
  ++core_->counts.read_backs;
  asked_at_ = core_->now();
  return request_ = core_->name_request(partition);
}

/// A restarted replica that leads may report what it had before it caught up.
bool Doubt::is_lost_for_good() {
  if (!lost_since_) lost_since_ = core_->now();
  return core_->now() >= *lost_since_ + core_->options.publish_timeout;
}

}  // namespace stela::relay

// Where a partition stands at the broker, as a read-back tells it.
#pragma once

#include "relay/chain.hpp"
#include "relay/core.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::relay {

/// What a read-back says about a partition, compared with what is marked.
struct Verdict {
  /// Why nothing may be published; unset if something may.
  std::optional<StopReason> stop = {};
  /// What stands in the place of the marked message, or the last message if the broker ends before
  /// that; null if it can't be read, or wasn't asked for.
  const FoundMessage* place = nullptr;
  /// Another message stands there, or the broker ends before it.
  bool is_displaced = false;
  /// The found messages after the marked one.
  std::span<const FoundMessage> following = {};
};

/// Looks at nothing but what it is given. `answer` was asked for from the position on or from
/// before that, and lives as long as the verdict.
Verdict compare(const Position& position, const Answer& answer, Fence fence,
                std::string_view store_id) noexcept;

/// The last message of the partition; 0 if there is none. A server that lost sight of a subject's
/// last message says that there is none, and has those before it.
std::uint64_t end_of(const Answer& answer) noexcept;

/// What the partition knew and what the broker has, for people.
std::string describe(const Position& position, const Answer& answer, Fence fence);

/// What is missing after a loss, and an operator's two answers to it. It can be told if the store
/// has the last message.
std::string describe_loss(const Position& position, const Answer& answer, PartitionId partition,
                          bool has_last);

/// The message carries the event with this id.
bool carries(const FoundMessage& found, const EventId& id);

/// Which of the messages the store doesn't have, whose ids it gives for their sequences; empty if
/// it has all of them. With `has_more`, more messages follow these.
std::string missing_in_store(std::span<const FoundMessage> messages,
                             const std::vector<EventId>& ids, bool has_more);

/// Keeps in step whether it is known where the partition stands, the question that was asked about
/// it, the worker's number of open questions, and for how long the answers have brought nothing.
class Doubt {
 public:
  explicit Doubt(Core& core) noexcept : core_{&core} {}

  /// From now on nobody knows where the partition stands. An open question is dropped.
  void begin() noexcept;
  /// Something wasn't acknowledged: doubt begins with the answers to the rest.
  void announce() noexcept {
    if (is_over()) state_ = State::announced;
  }
  /// It is known, for a while.
  void end();
  bool is_asked() const noexcept { return state_ == State::asked; }
  bool is_unasked() const noexcept { return state_ == State::unasked; }
  bool is_announced() const noexcept { return state_ == State::announced; }
  bool is_over() const noexcept { return state_ == State::over; }

  /// Few enough lanes ask; those that are in trouble leave room for the others.
  bool may_ask(bool is_in_trouble) const noexcept;
  /// The name of the question.
  std::uint64_t ask(PartitionId partition);
  bool awaits(const Answer& answer) const noexcept {
    return is_asked() && answer.request == request_;
  }
  /// When the answer must be there.
  Steady answer_due() const { return asked_at_ + core_->options.publish_timeout; }
  /// Somebody may have changed the stream since.
  Steady look_again() const noexcept { return look_again_; }

  /// How many doubts in a row brought nothing, with this one.
  int count_fruitless() noexcept { return ++fruitless_; }
  void bear_fruit() noexcept { fruitless_ = 0; }
  /// The broker says that messages are gone: true if it has said so for too long.
  bool is_lost_for_good();
  /// They are back.
  bool end_loss() noexcept { return std::exchange(lost_since_, std::nullopt).has_value(); }

 private:
  enum class State : std::uint8_t { unasked, asked, over, announced };

  Core* core_;
  State state_ = State::unasked;
  std::uint64_t request_ = 0;
  Steady asked_at_ = {};
  Steady look_again_ = {};
  int fruitless_ = 0;
  std::optional<Steady> lost_since_;
};

}  // namespace stela::relay

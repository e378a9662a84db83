// Where a partition is at the broker, according to a read-back.
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

/// The result of comparing a read-back with the marked position.
struct Verdict {
  /// Why nothing may be published; unset if publishing may continue.
  std::optional<StopReason> stop = {};
  /// The message in the place of the marked one, or the last message if the broker ends earlier;
  /// null if it can't be read, or wasn't asked for.
  const FoundMessage* place = nullptr;
  /// Another message has taken that place, or the broker ends before it.
  bool is_displaced = false;
  /// The found messages after the marked one.
  std::span<const FoundMessage> following = {};
};

/// A pure function. `answer` was requested from the position on, or from an earlier place, and must
/// outlive the verdict.
Verdict compare(const Position& position, const Answer& answer, Fence fence,
                std::string_view store_id) noexcept;

/// The last message of the partition; 0 if there is none. A server that lost track of a subject's
/// last message reports none, although it has earlier ones.
std::uint64_t end_of(const Answer& answer) noexcept;

/// The known position and the broker's contents, for people.
std::string describe(const Position& position, const Answer& answer, Fence fence);

/// Describes a loss, and an operator's two remedies. It can be described if the store has the last
/// message.
std::string describe_loss(const Position& position, const Answer& answer, PartitionId partition,
                          bool has_last);

/// Whether the message carries the event with this id.
bool carries(const FoundMessage& found, const EventId& id);

/// Names the messages that the store lacks; `ids` are its ids for their sequences. Empty if it has
/// all of them. With `has_more`, more messages follow.
std::string missing_in_store(std::span<const FoundMessage> messages,
                             const std::vector<EventId>& ids, bool has_more);

/// Keeps consistent whether the partition's position is known, the open question about it, the
/// worker's number of open questions, and how long answers have been fruitless.
class Doubt {
 public:
  explicit Doubt(Core& core) noexcept : core_{&core} {}

  /// The position is unknown from now on. Drops an open question.
  void begin() noexcept;
  /// Something wasn't acknowledged: doubt begins once the rest is answered.
  void announce() noexcept {
    if (is_over()) state_ = State::announced;
  }
  /// The position is known again, until `look_again`.
  void end();
  bool is_asked() const noexcept { return state_ == State::asked; }
  bool is_unasked() const noexcept { return state_ == State::unasked; }
  bool is_announced() const noexcept { return state_ == State::announced; }
  bool is_over() const noexcept { return state_ == State::over; }

  /// True if few enough lanes are asking; lanes in trouble leave room for others.
  bool may_ask(bool is_in_trouble) const noexcept;
  /// Returns the name of the question.
  std::uint64_t ask(PartitionId partition);
  bool awaits(const Answer& answer) const noexcept {
    return is_asked() && answer.request == request_;
  }
  /// When the answer is due.
  Steady answer_due() const { return asked_at_ + core_->options.publish_timeout; }
  /// When to check the stream again, because somebody may have changed it.
  Steady look_again() const noexcept { return look_again_; }

  /// Counts consecutive fruitless doubts, including this one.
  int count_fruitless() noexcept { return ++fruitless_; }
  void bear_fruit() noexcept { fruitless_ = 0; }
  /// The broker reports lost messages: true once it has done so for too long.
  bool is_lost_for_good();
  /// The messages are back.
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

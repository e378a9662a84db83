// What a JetStream stream does with what it is sent: the part of it that a relay can notice.
#pragma once

#include "simulation/world.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stela::sim {

/// A message as it is sent.
struct Sent {
  std::string id = {};
  std::string subject = {};
  std::optional<std::uint64_t> expected_last_sequence = {};
  std::optional<std::uint64_t> expected_last_subject_sequence = {};
  std::string expected_last_id = {};
  std::size_t size = 0;
  // What Stela's headers say; a foreign message has no store id.
  std::string store_id = {};
  std::int64_t event = 0;
  std::int64_t redelivery = 0;
};

struct Stored {
  std::uint64_t sequence = 0;
  Time at = 0;
  bool deleted = false;
  Sent message;
};

/// JetStream's error codes, as the server numbers them.
enum class StreamError : int {
  none = 0,
  wrong_last_sequence = 10071,
  wrong_last_id = 10070,
  too_large = 10054,
  full = 10077,
};

struct PublishResult {
  StreamError error = StreamError::none;
  std::uint64_t sequence = 0;
  bool duplicate = false;
};

struct StreamLimits {
  std::size_t max_messages = SIZE_MAX;
  std::size_t max_message_size = 1024 * 1024;
  Time duplicate_window = 120'000'000;
  /// Servers up to 2.11 look for duplicates before they compare sequences, later ones after.
  bool duplicates_first = true;
};

/// One stream. Limits retention, and new messages are refused when it is full.
class JetStreamModel {
 public:
  explicit JetStreamModel(const StreamLimits& limits = {}) : limits_{limits} {}

  PublishResult publish(const Sent& message, Time now);

  std::uint64_t first_sequence() const noexcept { return first_; }
  std::uint64_t last_sequence() const noexcept { return first_ + messages_.size() - 1; }
  /// Null if it isn't there, or was deleted.
  const Stored* find(std::uint64_t sequence) const noexcept;
  const Stored* last_of(std::string_view subject) const noexcept;
  const std::deque<Stored>& messages() const noexcept { return messages_; }

  /// The server was started again: what it kept in memory only is rebuilt from what is young.
  void restart(Time now);
  /// Removes what is before `sequence`.
  void purge_before(std::uint64_t sequence);
  void erase(std::uint64_t sequence);
  /// The server lost its last messages, though it had acknowledged them.
  void lose_tail(std::size_t count);
  void set_limits(const StreamLimits& limits) noexcept { limits_ = limits; }
  const StreamLimits& limits() const noexcept { return limits_; }

 private:
  std::optional<PublishResult> find_duplicate(const Sent& message, Time now);
  std::optional<PublishResult> check_sequence(const Sent& message) const;
  void forget_old(Time now);

  StreamLimits limits_;
  std::deque<Stored> messages_;
  std::uint64_t first_ = 1;
  std::string last_id_;
  std::unordered_map<std::string, std::uint64_t> ids_;
  std::deque<std::pair<Time, std::string>> ids_by_age_;
  std::unordered_map<std::string, std::uint64_t> last_by_subject_;
};

}  // namespace stela::sim

// Simulated time, chance and the queue of what is going to happen.
#pragma once

#include <stela/framework/clock.hpp>
#include <stela/framework/uuid.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::sim {

/// Microseconds.
using Time = std::int64_t;

inline constexpr Time ms = 1'000;
inline constexpr Time second = 1'000'000;

inline constexpr Time micros(std::chrono::microseconds duration) noexcept {
  return duration.count();
}

/// xoshiro256**, written out so that every machine draws the same.
class Chance final : public Random {
 public:
  explicit Chance(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }

  std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// From 0 up to `count` - 1; 0 if there is nothing to choose from.
  std::int64_t below(std::int64_t count) noexcept {
    return count <= 1 ? 0 : static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(count));
  }
  /// From `least` to `most`, both included.
  std::int64_t between(std::int64_t least, std::int64_t most) noexcept {
    return least + below(most - least + 1);
  }
  bool happens(double probability) noexcept {
    return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
  }

  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(next() >> 56);
  }

 private:
  std::uint64_t state_[4]{};
};

/// The queue of events, and the hash of everything that happened.
class World {
 public:
  explicit World(std::uint64_t seed) : chance{seed} {}

  Time now() const noexcept { return now_; }
  void at(Time time, std::function<void()> what) {
    std::uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back(std::move(what));
    } else {
      slot = free_.back();
      free_.pop_back();
      slots_[slot] = std::move(what);
    }
    queue_.push({time < now_ ? now_ : time, next_++, slot});
  }
  void after(Time delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  /// Lets the next thing happen, unless that is later than `limit`; then time stands at `limit`.
  bool step(Time limit) {
    if (queue_.empty() || queue_.top().time > limit) {
      now_ = limit > now_ ? limit : now_;
      return false;
    }
    const Entry entry = queue_.top();
    queue_.pop();
    now_ = entry.time;
    ++events_;
    const std::function<void()> what = std::move(slots_[entry.slot]);
    free_.push_back(entry.slot);
    what();
    return true;
  }

  /// Adds to the hash that two runs of one seed must agree on.
  void mix(std::uint64_t value) noexcept {
    hash_ = (hash_ ^ value ^ static_cast<std::uint64_t>(now_)) * 0x100000001b3;
  }
  std::uint64_t hash() const noexcept { return hash_; }
  std::uint64_t events() const noexcept { return events_; }

  Chance chance;

 private:
  struct Entry {
    Time time;
    std::uint64_t order;
    std::uint32_t slot;
    bool operator<(const Entry& other) const noexcept {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  Time now_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325;
  std::priority_queue<Entry> queue_;
  /// What the entries do; apart, so that sorting moves little.
  std::vector<std::function<void()>> slots_;
  std::vector<std::uint32_t> free_;
};

/// A host's clocks: wall time can be stepped, steady time drifts a little.
class SimClock final : public Clock {
 public:
  SimClock(const World& world, double drift) noexcept : world_{world}, drift_{drift} {}

  Timestamp now() const override {
    return Timestamp{std::chrono::microseconds{start_of_wall + here() + (step_ ? *step_ : 0)}};
  }
  std::chrono::steady_clock::time_point steady_now() const override {
    const auto drifted = static_cast<Time>(static_cast<double>(here()) * (1 + drift_));
    return std::chrono::steady_clock::time_point{std::chrono::microseconds{drifted + second}};
  }
  /// From here on, until this clock shows `time`.
  Time until(std::chrono::steady_clock::time_point time) const {
    const auto micros = std::chrono::ceil<std::chrono::microseconds>(time - steady_now()).count();
    return micros <= 0 ? 0 : static_cast<Time>(static_cast<double>(micros) / (1 + drift_)) + 1;
  }
  /// Who waits in a call that blocks is ahead of the world, and hears nothing of it until then.
  Time here() const noexcept { return std::max(world_.now(), blocked_until_); }
  bool is_blocked() const noexcept { return blocked_until_ > world_.now(); }
  void block_until(Time time) noexcept { blocked_until_ = std::max(blocked_until_, time); }

  /// What the host's administrator set it ahead by; shared by all on the host.
  void share_step(const Time* step) noexcept { step_ = step; }

  static constexpr Time start_of_wall = 1'767'225'600'000'000;  // 2026-01-01

 private:
  const World& world_;
  double drift_;
  Time blocked_until_ = 0;
  const Time* step_ = nullptr;
};

}  // namespace stela::sim

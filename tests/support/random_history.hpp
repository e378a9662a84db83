// Histories of all shapes that a store accepts, generated from a seed.
#pragma once

#include <stela/framework.hpp>
#include <stela/testing/manual_clock.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace stela::test {

/// Random bytes from a seed, so that ids are the same in every run.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_{seed} {}
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(engine_());
  }

 private:
  std::mt19937_64 engine_;
};

/// Appends to one or several streams: names, types, contexts, payloads and times of all kinds,
/// sometimes with a caller's append id, and now and then a snapshot.
class RandomHistory {
 public:
  RandomHistory(std::uint64_t seed, testing::ManualClock& clock) : engine_{seed}, clock_{clock} {}

  void append_to(EventStore& store, int appends);

 private:
  int up_to(int largest) { return std::uniform_int_distribution<int>{0, largest}(engine_); }
  bool one_in(int count) { return up_to(count - 1) == 0; }
  std::string stream();
  std::string payload();
  std::string text();
  Context context();
  void append(EventStore& store);

  std::mt19937_64 engine_;
  testing::ManualClock& clock_;
  int append_ids_ = 0;
};

}  // namespace stela::test

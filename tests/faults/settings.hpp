// What the long forms set: how long, how often, and from which seed.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace stela::test {

/// The number in that variable of the environment: "STELA_FAULTS_KILLS".
std::int64_t setting(const std::string& name, std::int64_t otherwise);

/// STELA_FAULTS_SEED, or a new one, mixed with the name of the running test; printed, so that the
/// run can be repeated.
std::uint64_t seed_of_test();

/// Random numbers that are the same everywhere for the same seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_{seed} {}

  /// From 0 up to, but without, `end`.
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool one_in(std::int64_t times) { return below(times) == 0; }

 private:
  std::mt19937_64 engine_;
};

/// One seed out of several numbers.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept;

}  // namespace stela::test

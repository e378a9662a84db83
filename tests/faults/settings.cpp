#include "faults/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>

namespace stela::test {

std::int64_t setting(const std::string& name, std::int64_t otherwise) {
  const char* const text = std::getenv(name.c_str());
  return text != nullptr ? std::stoll(text) : otherwise;
}

std::uint64_t seed_of_test() {
  const auto seed = setting("STELA_FAULTS_SEED", std::random_device{}());
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string{test->test_suite_name()} + '.' + test->name();
  std::cout << name << ": STELA_FAULTS_SEED=" << seed << std::endl;
  return mix(static_cast<std::uint64_t>(seed), std::hash<std::string>{}(name));
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = a + 0x9e3779b97f4a7c15U * (b + 1);
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

}  // namespace stela::test

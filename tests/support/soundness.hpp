// The results of `verify`, in a form that tests compare.
#pragma once

#include <stela/eventstore/operations.hpp>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace stela::test {

/// "events: event 17: it doesn't match its checksum", without the advice.
inline std::vector<std::string> problems_of(Store& store, const VerifyOptions& options = {}) {
  std::vector<std::string> problems;
  const auto result = StoreOperations{store}.verify(
      [&](const Problem& problem) {
        problems.push_back(std::string{problem.check} + ": " + problem.where + ": " + problem.what);
        EXPECT_FALSE(problem.advice.empty());
      },
      options);
  EXPECT_EQ(result.problems, static_cast<std::int64_t>(problems.size()));
  EXPECT_EQ(result.is_sound(), problems.empty());
  return problems;
}

}  // namespace stela::test

// What the tests of exports and imports have in common.
#pragma once

#include "support/random_history.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace stela::test {

inline std::string export_of(EventStore& store, const AllQuery& which = {}) {
  std::ostringstream out;
  export_events(store, out, which);
  return out.str();
}

inline ImportResult import_text(Store& store, const std::string& text,
                                const TransferOptions& options = {}) {
  std::istringstream in{text};
  return import_events(store, in, options);
}

/// The text's first lines, line breaks and all.
inline std::string first_lines(const std::string& text, int count) {
  std::size_t end = 0;
  for (int i = 0; i < count; ++i) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

/// Stores in memory whose clock and ids are the same in every run.
class TransferTest : public ::testing::Test {
 protected:
  sqlite::Options options(Codec codec = Codec::json) {
    return {
        .durability = sqlite::Durability::relaxed, .codec = codec, .clock = &clock, .random = &ids};
  }
  Store in_memory(Codec codec = Codec::json) { return sqlite::open_in_memory(options(codec)); }

  TempDir dir;
  stela::testing::ManualClock clock;
  SeededRandom ids{9};
};

}  // namespace stela::test

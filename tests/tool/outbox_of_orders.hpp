// A database with an outbox of four partitions, made and filled by the program.
#pragma once

#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gtest/gtest.h>

#include <string>

namespace stela::test {

class OutboxOfOrders : public ::testing::Test {
 protected:
  void SetUp() override {
    run_well({"migrate", "--db", db_, "--durability", "relaxed"});
    run_well({"outbox", "enable", "--db", db_, "--partitions", "4"});
  }
  /// Events to be published, each in a stream of its own.
  void append(int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      lines += "{\"stream\":\"order-" + std::to_string(i) + "\",\"data\":{}}\n";
    }
    run_well({"events", "append", "--db", db_, "--stdin", "--type", "order.placed", "--publish"},
             {.input = lines});
  }
  std::string status() const { return run_well({"outbox", "status", "--db", db_, "--json"}); }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
};

}  // namespace stela::test

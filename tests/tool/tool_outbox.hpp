// A database with an outbox and three messages that wait, made by the program.
#pragma once

#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stela::test {

class ToolOutbox : public ::testing::Test {
 protected:
  void SetUp() override {
    run_well({"migrate", "--db", db_, "--durability", "relaxed"});
    run_well({"outbox", "enable", "--db", db_});
    for (int i = 1; i <= 3; ++i) {
      run_well({"events", "append", "--db", db_, "--stream", "order-" + std::to_string(i), "--type",
                "order.placed", "--publish", "--data", "{}"});
    }
  }
  /// As a relay parks what the broker refuses.
  void park(int sequence) {
    RawSqlite raw{db_};
    const std::string which = std::to_string(sequence);
    raw.run(
        "INSERT INTO outbox_parked (stream, sequence, partition, parked_at, attempts, reason, "
        "error) SELECT stream, sequence, partition, 0, 5, 'refused', 'too large \x1b[31m' FROM "
        "outbox_messages WHERE sequence = " +
        which);
    raw.run("DELETE FROM outbox_messages WHERE sequence = " + which);
  }
  /// A worker has sent all that waits, and so long had no answer.
  void fly(int seconds) {
    RawSqlite{db_}.run(
        "UPDATE outbox_partitions SET owner = 'w1', lease_until = (strftime('%s', 'now') + 3600) "
        "* 1000000, lease_ttl = 3600000000, flight_count = 3, moved_at = (strftime('%s', 'now') "
        "- " +
        std::to_string(seconds) + ") * 1000000");
  }
  void land() { RawSqlite{db_}.run("UPDATE outbox_partitions SET flight_count = 0"); }
  Ran outbox(std::vector<std::string> words) const {
    words.insert(words.begin(), "outbox");
    words.insert(words.end(), {"--db", db_});
    return run(words);
  }

  TempDir dir_ = TempDir::in_memory();
  std::string db_ = dir_.file("shop.db");
};

}  // namespace stela::test

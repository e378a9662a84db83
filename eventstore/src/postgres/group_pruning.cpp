#include "postgres/group_pruning.hpp"

#include <stela/framework/uuid.hpp>

#include <exception>

namespace stela::postgres {

// Starts at a random count, so that processes with few appends do their share too.
GroupPruning::GroupPruning(Sessions& sessions)
    : sessions_{sessions}, appends_{make_uuid().bytes().back() * appends_between / 256U} {}

void GroupPruning::note_append(const Conventions& conventions) noexcept {
  if (appends_.fetch_add(1, std::memory_order_relaxed) % appends_between != appends_between - 1) {
    return;
  }
  try {
    prune();
  } catch (const std::exception& e) {
    conventions.log->write({.level = LogLevel::warning,
                            .name = "store.prune_failed",
                            .message = e.what(),
                            .fields = {}});
  }
}

void GroupPruning::prune() {
  const auto begin = [](Connection& connection) {
    begin_transaction(
        connection, begin_sql, "pruning the groups of appends",
        [](Connection::Pipeline& pipeline) { pipeline.add(sql::commit_unflushed{}); });
  };
  sessions_.run(begin, [](Connection& connection) {
    connection.run(sql::prune_groups{.at_once = rows_at_once});
    check_committed(connection.query("COMMIT", {}, sql::prune_groups::doing));
  });
}

}  // namespace stela::postgres

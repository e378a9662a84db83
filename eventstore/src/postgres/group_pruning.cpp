#include "postgres/group_pruning.hpp"

#include <stela/framework/uuid.hpp>

#include <exception>

namespace stela::postgres {

// Anywhere, so that processes of a few appends do their share too.
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
  sessions_.read([&](Connection& connection) {
    Connection::Pipeline pipeline{connection};
    pipeline.add(begin_sql);
    pipeline.add("SELECT set_config('synchronous_commit', 'off', true)");
    Parameters parameters;
    parameters.add(rows_at_once);
    // Their ids begin with the time. Nobody waits for a lock, or asks for a commit, for a day.
    pipeline.add(
        "DELETE FROM stela.append_groups WHERE group_id IN (SELECT g.group_id "
        "FROM stela.append_groups AS g ORDER BY g.group_id LIMIT $1) "
        "AND written_at < clock_timestamp() - interval '2 days'",
        std::move(parameters));
    pipeline.add("COMMIT");
    try {
      check_committed(pipeline.run_all("pruning the groups of appends")[3]);
    } catch (...) {
      connection.roll_back();
      throw;
    }
  });
}

}  // namespace stela::postgres

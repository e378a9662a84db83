#include "postgres/settlement.hpp"

namespace stela::postgres {

Settled settle_group(ServerSession& session, const Uuid& group, std::int64_t order_lock,
                     const std::string& lock_timeout, const StandbyPatience& patience) {
  StandbyWait standby{session.connection, patience};
  Connection::Pipeline pipeline{session.connection};
  pipeline.add(begin_sql);
  Parameters timeout;
  timeout.add(lock_timeout);
  pipeline.add(confirmed_sql);
  pipeline.add("SELECT set_config('lock_timeout', $1, true)", std::move(timeout));
  Parameters lock;
  lock.add(order_lock);
  pipeline.add(lock_sql, std::move(lock));
  Parameters wanted;
  wanted.add_uuid(group);
  pipeline.add("SELECT is_void, first, last FROM stela.settle_group($1)", std::move(wanted));
  // So that the commit flushes, also if it finds the group.
  pipeline.add("SELECT pg_logical_emit_message(true, 'stela', '')");
  pipeline.add("COMMIT");
  const auto results = pipeline.run_all("settling a commit in doubt");
  check_committed(results.back());
  standby.check_confirmed();
  const Result& found = results[4];
  return {.is_void = found.integer(0, 0) != 0,
          .first = found.is_null(0, 1) ? 0 : found.integer(0, 1),
          .last = found.is_null(0, 2) ? 0 : found.integer(0, 2)};
}

}  // namespace stela::postgres

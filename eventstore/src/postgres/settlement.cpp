#include "postgres/settlement.hpp"

#include "postgres_sql/settlement.hpp"

namespace stela::postgres {

Settled settle_group(ServerSession& session, const Uuid& group, std::int64_t order_lock,
                     const std::string& lock_timeout, const StandbyPatience& patience) {
  StandbyWait standby{session.connection, patience};
  Connection::Pipeline pipeline{session.connection};
  pipeline.add(begin_sql);
  pipeline.add(sql::commit_confirmed{});
  pipeline.add(sql::set_lock_timeout{.timeout = lock_timeout});
  pipeline.add(sql::lock{.lock = order_lock});
  const auto settled = pipeline.add(sql::settle_group{.group = group});
  // Makes the commit flush, even if it finds the group.
  pipeline.add(sql::flush{});
  pipeline.add("COMMIT");
  auto results = pipeline.run_all("settling a commit in doubt");
  check_committed(results.back());
  standby.check_confirmed();
  const auto found = settled.row(results);
  return {.is_void = found.is_void(), .first = found.first(), .last = found.last()};
}

}  // namespace stela::postgres

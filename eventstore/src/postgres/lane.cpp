#include "postgres/lane.hpp"

namespace stela::postgres {

void set_up_lane(Connection& connection, const std::string& lock_timeout) {
  Parameters parameters;
  parameters.add(lock_timeout);
  // An append turns synchronous_commit off for itself; the flush behind it doesn't. A plan that was
  // made while the tables were small must do when they are large. A server that gives memory back
  // after each call faults it in again for the next: what was used once, of this size, it keeps.
  connection.query(
      "SELECT set_config('synchronous_commit', 'on', false), "
      "set_config('client_min_messages', 'warning', false), "
      "set_config('lock_timeout', $1, false), "
      "set_config('default_transaction_isolation', 'read committed', false), "
      "set_config('default_transaction_read_only', 'off', false), "
      "set_config('default_transaction_deferrable', 'off', false), "
      "set_config('plan_cache_mode', 'force_generic_plan', false), "
      "set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false), "
      "set_config('enable_mergejoin', 'off', false), set_config('enable_memoize', 'off', false), "
      "set_config('enable_material', 'off', false), length(repeat('x', 6000000))",
      std::move(parameters), "setting up a session for appends");
}

}  // namespace stela::postgres

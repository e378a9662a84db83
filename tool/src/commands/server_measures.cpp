#include "commands/server_measures.hpp"

#include "commands/standby_names.hpp"

#include <algorithm>

namespace stela::tool {
std::string problem_of_commits(const postgres::ServerStatus& status) {
  if (status.is_standby || status.synchronous_standby_names.empty()) return {};
  // By their names, as roles outside of pg_monitor see no more of them.
  const StandbyNames names = parse_standby_names(status.synchronous_standby_names);
  const auto confirming = std::count_if(
      status.standbys.begin(), status.standbys.end(), [&](const postgres::StandbyStatus& standby) {
        return names.has(standby.name) && (standby.state.empty() || standby.state == "streaming");
      });
  if (confirming >= names.wanted) return {};
  const std::string connected = confirming == 0
                                    ? "no synchronous standby is connected"
                                    : "only " + std::to_string(confirming) + " of " +
                                          std::to_string(names.wanted) + " synchronous standbys " +
                                          (confirming == 1 ? "is" : "are") + " connected";
  return "commits wait for '" + status.synchronous_standby_names + "', and " + connected;
}

std::vector<Measure> measure_server(StoreSession& session) {
  const postgres::ServerStatus status = postgres::server_status(session.store());
  std::string problem = problem_of_commits(status);
  if (status.is_standby && session.place().names_several_servers()) {
    problem = "only a standby answers, which takes no writes";
  }
  if (problem.empty() && status.only_reads) {
    problem = "nothing can be appended: default_transaction_read_only is on";
  }
  std::chrono::microseconds lag{0};
  for (const auto& standby : status.standbys) lag = std::max(lag, standby.lag.value_or(lag));
  const auto age =
      status.transactions.empty() ? std::chrono::microseconds{0} : status.transactions.front().age;
  return {{.name = "unwritable",
           .value = problem.empty() ? 0.0 : 1.0,
           .critical = 0.0,
           .problem = problem},
          {.name = "standby_lag",
           .value = in_seconds(lag),
           .warning = in_seconds(long_lag),
           .unit = "s"},
          {.name = "open_transaction",
           .value = in_seconds(age),
           .warning = in_seconds(long_transaction),
           .unit = "s"}};
}

Measure measure_writing(StoreSession& session) {
  if (session.place().is_on_server()) return measure_server(session).front();
  Measure measure = measure_writing(session.place());
  if (measure.state() != ok) return measure;
  try {
    // Waits for the lock, as who appends does, and changes nothing.
    session.store().transact([](Transaction&) {});
  } catch (const StoreBusy& e) {
    measure.value = 1;
    measure.problem = e.what();
  } catch (const Error&) {
    // Of this user, or of this moment.
  }
  return measure;
}

}  // namespace stela::tool

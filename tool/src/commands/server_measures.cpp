#include "commands/server_measures.hpp"

#include "commands/standby_names.hpp"

#include <algorithm>
#include <utility>

namespace stela::tool {
std::string problem_of_commits(const postgres::ServerStatus& status) {
  if (status.is_standby || status.synchronous_standby_names.empty()) return {};
  // By name, because roles outside pg_monitor see nothing else of them.
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

StoreTrouble trouble_of(const postgres::ServerStatus& status, const DatabasePlace& place) {
  if (std::string problem = problem_of_commits(status); !problem.empty()) {
    return {std::move(problem),
            "start the standby, or take it out of synchronous_standby_names; workers continue by "
            "themselves"};
  }
  if (status.is_standby && place.names_several_servers()) {
    return {"only a standby answers, which takes no writes",
            "start the primary, or promote the standby; workers continue by themselves"};
  }
  if (status.only_reads) {
    return {"nothing can be appended: default_transaction_read_only is on",
            "free some space if its disk is full, and turn default_transaction_read_only off"};
  }
  return {};
}

StoreTrouble trouble_of_writing(StoreSession& session) {
  const auto problem = session.place().find_write_problem();
  if (problem && problem->is_of_this_user) return {};
  if (problem) {
    return {"the database " + problem->what, std::string{way_to_write}};
  }
  try {
    // Waits for the lock like an append, and changes nothing.
    session.store().transact([](Transaction&) {});
  } catch (const StoreBusy& e) {
    return {e.what(),
            "end the process that it names, or let it finish; workers continue by themselves"};
  } catch (const Error& e) {
    return {e.what(), {}};
  }
  return {};
}

std::vector<Measure> measure_server(StoreSession& session) {
  const postgres::ServerStatus status = postgres::server_status(session.store());
  const std::string problem = trouble_of(status, session.place()).what;
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
  measure.problem = trouble_of_writing(session).what;
  measure.value = measure.problem.empty() ? 0 : 1;
  return measure;
}

}  // namespace stela::tool

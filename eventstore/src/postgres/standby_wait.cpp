#include "postgres/standby_wait.hpp"

#include "database/postgres/user_statement.hpp"
#include "postgres_sql/presence.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace stela::postgres {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds pause_between_looks{1000};

std::string described(const sql::awaited_standby::Row& row) {
  const std::string connected{row.connected()};
  std::string text = "commits wait for the standby that synchronous_standby_names = '";
  text.append(row.wanted()).append("' names, and ");
  text += connected.empty() ? "no standby is connected" : "only " + connected + " is connected";
  return text + "; start the standby, or change synchronous_standby_names";
}

}  // namespace

std::string find_awaited_standby(Sessions& sessions, std::int64_t pid) noexcept try {
  std::string found;
  // Others wait for a flush meanwhile, and there is a deadline.
  const Sessions::Urgent urgent;
  sessions.read([&](Connection& connection) {
    auto row = connection.rows(sql::awaited_standby{.pid = pid});
    found = row.step() ? described(row) : std::string{};
  });
  return found;
} catch (const std::exception&) {
  return {};
}

StandbyWait::StandbyWait(Connection& connection, const StandbyPatience& patience)
    : connection_{connection},
      patience_{patience},
      next_look_{std::min(patience.deadline, steady_clock::now() + pause_between_looks)} {
  connection_.tell_of_silence(this);
}

StandbyWait::Time StandbyWait::wait_until(Time deadline) {
  if (has_cancelled_) return deadline;
  const Time now = steady_clock::now();
  if (now >= next_look_) look(now);
  if (has_cancelled_) return std::max(deadline, now + pause_between_looks);
  // A server that names what it waits for isn't lost.
  return standby_.empty() ? std::min(next_look_, deadline) : next_look_;
}

void StandbyWait::look(Time now) {
  const bool is_pooled = connection_.options().is_pooled;
  standby_ = find_awaited_standby(patience_.sessions,
                                  is_pooled ? 0 : std::int64_t{PQbackendPID(connection_.handle())});
  next_look_ = now + pause_between_looks;
  if (now < patience_.deadline) {
    next_look_ = std::min(next_look_, patience_.deadline);
  } else if (!standby_.empty()) {
    has_cancelled_ = true;
    connection_.cancel();
  }
}

void StandbyWait::check_confirmed() {
  const auto warnings = connection_.take_warnings();
  if (warnings.empty()) return;
  // The cancel may still arrive, and would hit the next statement.
  if (has_cancelled_) connection_.give_up();
  if (!standby_.empty()) throw StoreBusy{standby_};
  throw StoreBusy{"the server didn't confirm that the commit is durable: " + warnings.front()};
}

void commit_statements(Connection& connection, database::Sync sync,
                       const StandbyPatience& patience) {
  Connection::Pipeline pipeline{connection};
  if (connection.ran_users_sql()) {
    // Deferred constraints and triggers may write, too.
    pipeline.add("SET CONSTRAINTS ALL IMMEDIATE");
    add_restoring(pipeline, connection);
    add_check_of_events(pipeline, std::nullopt);
  }
  const bool is_confirmed = sync != database::Sync::none;
  // Set last, because the statements' functions may have changed it.
  if (is_confirmed) {
    pipeline.add(sql::commit_confirmed{});
  } else if (connection.ran_users_sql()) {
    pipeline.add(sql::commit_unflushed{});
  }
  pipeline.add("COMMIT");
  const auto commit = [&] {
    const std::vector<Result> results = pipeline.run();
    for (const Result& each : results) {
      if (!each.is_error()) continue;
      fail_if_foreign_events(each);
      connection.fail(each.get(), "the commit");
    }
    check_committed(results.back());
    connection.note_users_sql(false);
  };
  if (!is_confirmed) return commit();
  StandbyWait standby{connection, patience};
  try {
    commit();
  } catch (const ConnectionLost& e) {
    throw CommitInDoubt{std::string{"whether it is committed isn't known, look before you try "
                                    "again: "} +
                        e.what()};
  }
  try {
    standby.check_confirmed();
  } catch (const StoreBusy& e) {
    throw StoreBusy{std::string{e.what()} +
                    "; what was written stands on this server, unconfirmed: look before you try "
                    "again"};
  }
}

}  // namespace stela::postgres

// Commits that a synchronous standby doesn't confirm.
#pragma once

#include "postgres/server_session.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace stela::postgres {

/// For how long, and over which sessions the server is asked meanwhile.
struct StandbyPatience {
  Sessions& sessions;
  std::chrono::steady_clock::time_point deadline;
};

/// While it lives, a commit on `connection` waits for a standby until the deadline, and then the
/// server is told to wait no more: what isn't answered would hold the connection on the server for
/// as long as the standby is missing. Other silence is that of any connection.
/// Threads: that of the connection.
class StandbyWait final : private Connection::Silence {
 public:
  StandbyWait(Connection& connection, const StandbyPatience& patience);
  ~StandbyWait() override { connection_.tell_of_silence(nullptr); }
  StandbyWait(const StandbyWait&) = delete;
  StandbyWait& operator=(const StandbyWait&) = delete;

  /// StoreBusy if the server warned of the commit that it has just answered: a standby didn't
  /// confirm it. It names the standby.
  void check_confirmed();

 private:
  using Time = std::chrono::steady_clock::time_point;

  Time wait_until(Time deadline) override;
  void look(Time now);

  Connection& connection_;
  const StandbyPatience patience_;
  Time next_look_;
  /// After it has been told to stop, the server's answer is awaited as long as any.
  bool has_cancelled_ = false;
  /// What the commit waits for, when it was last looked at; empty if for no standby.
  std::string standby_;
};

/// Comes in a transaction before its COMMIT, if that waits for a standby: the server says then what
/// isn't confirmed, whatever messages the role asks for.
inline constexpr std::string_view confirmed_sql =
    "SELECT set_config('synchronous_commit', 'on', true), "
    "set_config('client_min_messages', 'warning', true)";
/// The same, if it doesn't wait.
inline constexpr std::string_view unconfirmed_sql =
    "SELECT set_config('synchronous_commit', 'off', true)";

/// Ends a transaction of statements of Stela's own. CommitInDoubt if the answer is lost, unless it
/// may be lost itself; StoreBusy, which names the standby, if that hasn't confirmed it at the
/// deadline.
void commit_statements(Connection& connection, database::Sync sync,
                       const StandbyPatience& patience);

/// For which standby the commits of this database wait now, for an error; empty if for none, or if
/// the server can't be asked. By `pid` alone, or without one by any.
std::string find_awaited_standby(Sessions& sessions, std::int64_t pid = 0) noexcept;

}  // namespace stela::postgres

// Handles commits that a synchronous standby doesn't confirm.
#pragma once

#include "postgres/server_session.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace stela::postgres {

/// How long to wait, and the sessions for asking the server meanwhile.
struct StandbyPatience {
  Sessions& sessions;
  std::chrono::steady_clock::time_point deadline;
};

/// While it lives, a commit on `connection` waits for a standby until the deadline. Then it tells
/// the server to stop waiting: otherwise the unanswered commit would hold the connection on the
/// server for as long as the standby is missing. Any other silence is treated as usual.
/// Threads: that of the connection.
class StandbyWait final : private Connection::Silence {
 public:
  StandbyWait(Connection& connection, const StandbyPatience& patience);
  ~StandbyWait() override { connection_.tell_of_silence(nullptr); }
  StandbyWait(const StandbyWait&) = delete;
  StandbyWait& operator=(const StandbyWait&) = delete;

  /// StoreBusy, naming the standby, if the server warned that a standby didn't confirm the last
  /// commit.
  void check_confirmed();

 private:
  using Time = std::chrono::steady_clock::time_point;

  Time wait_until(Time deadline) override;
  void look(Time now);

  Connection& connection_;
  const StandbyPatience patience_;
  Time next_look_;
  /// After the cancel, the answer is awaited as long as any other.
  bool has_cancelled_ = false;
  /// The standby that the commit waited for at the last look; empty if none.
  std::string standby_;
};

/// Commits a transaction of Stela's own statements. CommitInDoubt if the answer is lost, unless the
/// commit may be lost, too; StoreBusy, naming the standby, if that hasn't confirmed by the
/// deadline.
void commit_statements(Connection& connection, database::Sync sync,
                       const StandbyPatience& patience);

/// The standby that this database's commits are waiting for, for an error; empty if none, or if the
/// server can't be asked. Only the commit of process `pid`, unless that is 0.
std::string find_awaited_standby(Sessions& sessions, std::int64_t pid = 0) noexcept;

}  // namespace stela::postgres

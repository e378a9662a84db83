#include "tables/worker_process.hpp"

#include "database/host.hpp"
#include "database/presence.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace stela::outbox {

WorkerProcess find_process(const database::Database& database, const WorkerIdentity& worker) {
  if (worker.presence) {
    const auto lives = database.is_present(*worker.presence);
    if (!lives) return WorkerProcess::unknown;
    return *lives ? WorkerProcess::runs : WorkerProcess::ended;
  }
  // A worker in our container would have a presence: this one was, or is, in another container.
  if (worker.host != host::name() || worker.pid == getpid()) return WorkerProcess::unknown;
  const bool runs = kill(static_cast<pid_t>(worker.pid), 0) == 0 || errno != ESRCH;
  return runs ? WorkerProcess::runs : WorkerProcess::ended;
}

}  // namespace stela::outbox

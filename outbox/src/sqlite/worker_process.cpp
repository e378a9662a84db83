#include "sqlite/worker_process.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace stela::outbox {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

WorkerProcess find_process(std::string_view host, std::int64_t pid) {
  if (host != host_name()) return WorkerProcess::unknown;
  const bool runs = kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH;
  return runs ? WorkerProcess::runs : WorkerProcess::ended;
}

}  // namespace stela::outbox

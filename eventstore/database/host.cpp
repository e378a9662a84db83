#include "database/host.hpp"

#include <stela/framework/uuid.hpp>

#include <pwd.h>
#include <unistd.h>

#include <array>

namespace stela::host {

std::string name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string user() {
  std::array<char, 1024> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  std::string who = found != nullptr ? found->pw_name : "uid " + std::to_string(getuid());
  return who + '@' + name();
}

std::string make_worker_name() {
  return name() + ':' + std::to_string(getpid()) + ':' + make_uuid().to_string().substr(24);
}

}  // namespace stela::host

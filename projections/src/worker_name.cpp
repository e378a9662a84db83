#include "worker_name.hpp"

#include <stela/framework/uuid.hpp>

#include <unistd.h>

#include <array>

namespace stela::projections {

std::string make_worker_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return std::string{host.data()} + ':' + std::to_string(getpid()) + ':' +
         make_uuid().to_string().substr(24);
}

}  // namespace stela::projections

#include "support/loopback_listener.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "support/loopback.hpp"

#include <cerrno>
#include <system_error>

namespace stela::test {

LoopbackListener::LoopbackListener()
    : descriptor_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)} {
  sockaddr_in address = loopback(0);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (descriptor_ < 0 || bind(descriptor_, any, size) != 0 || listen(descriptor_, 16) != 0 ||
      getsockname(descriptor_, any, &size) != 0) {
    throw std::system_error{errno, std::generic_category(), "listening"};
  }
  port_ = ntohs(address.sin_port);
}

LoopbackListener::~LoopbackListener() {
  close(descriptor_);
}

int LoopbackListener::accept() const {
  return accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC);
}

}  // namespace stela::test

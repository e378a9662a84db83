// The address on which everything that the tests start listens.
#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace stela::test {

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

}  // namespace stela::test

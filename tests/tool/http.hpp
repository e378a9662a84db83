// Asks a server on loopback.
#pragma once

#include <cstdint>
#include <string>

namespace stela::test {

/// All that it answers, headers as well; empty if nobody listens.
std::string ask(std::uint16_t port, const std::string& request);
/// As ask, but says that there is nothing more to come.
std::string ask_and_end(std::uint16_t port, const std::string& request);
std::string get(std::uint16_t port, const std::string& path);
/// By a socket that is a file.
std::string ask_file(const std::string& path, const std::string& request);
/// What stands behind the headers.
std::string body_of(const std::string& answer);

/// The port of the address that stands in `text`; 0 if there is none.
std::uint16_t port_in(const std::string& text);

}  // namespace stela::test

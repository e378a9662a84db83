// From options of ours to a connection of nats.c.
#pragma once

#include "handles.hpp"

#include <stela/nats/connection.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace stela::nats {

/// "nats://one:4222,nats://two:4222" as a list. UsageError if it is empty, or a URL holds a user or
/// a password: those have options of their own, and a URL is shown in messages.
std::vector<std::string> split_urls(const std::string& url);

/// UsageError if the options contradict each other, or a file is missing.
void check(const std::string& url, const Credentials& credentials, const Tls& tls);

/// nats.c's options, with everything that both ends of a stream have in common. UsageError as
/// `check`; the secrets are read now.
OptionsHandle prepare(const std::string& url, const Credentials& credentials, const Tls& tls,
                      std::chrono::milliseconds connect_timeout);

/// True if trying again as we are is of no use: wrong credentials, or TLS that doesn't fit.
bool is_refusal(natsStatus status) noexcept;

}  // namespace stela::nats

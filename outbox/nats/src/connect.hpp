// From options of ours to a connection of nats.c.
#pragma once

#include "connecting.hpp"
#include "connection.hpp"

#include <stela/nats/connection.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace stela::nats {

struct Server {
  std::string url = {};
  std::string host = {};
  int port = 4222;
};

/// "nats://one:4222,nats://two:4222" as a list. UsageError if there is none, one can't be read, or
/// one holds a user or a password: those have options of their own, and a URL is shown in messages.
std::vector<Server> parse_servers(const std::string& url);

/// UsageError if the options contradict each other, or a file is missing.
void check(const std::string& url, const Credentials& credentials, const Tls& tls);

/// Somebody has to change something: wrong credentials, TLS that doesn't fit, a missing stream.
struct Misconfigured : BrokerFailed {
  using BrokerFailed::BrokerFailed;
};

struct Target {
  const std::string& url;
  const Credentials& credentials;
  const Tls& tls;
  /// For each server.
  std::chrono::milliseconds timeout;
  /// Sets callbacks, and returns what they work on.
  std::function<Closure(natsOptions*)> listen = {};
  /// Whether nobody wants the connection any more: no further server is tried.
  std::function<bool()> is_unwanted = {};
};

/// A connection to the first of the servers that takes us; it isn't mended when it breaks.
/// BrokerFailed if none does, Misconfigured if one says no; UsageError as `check`: the secrets are
/// read now.
Connection connect(const Target& target);

/// A subject for answers that no other connection has: "_INBOX.{uuid}". Those of nats.c are
/// numbered by a process, and its forked children continue with the same numbers.
std::string make_inbox();

/// For requests to the JetStream API that begin with `api`.
ContextHandle use_jetstream(natsConnection* connection, const std::string& api);

/// What a server says of a stream, which may be anything: BrokerFailed if its configuration isn't
/// in it.
StreamInfoHandle take_stream_info(jsStreamInfo* raw, const std::string& doing);

/// What nats.c says of such a request: "Not Found (JetStream error 10059)".
std::string in_words(natsStatus status, jsErrCode code);

}  // namespace stela::nats

// Turns options into a connection of nats.c.
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

/// Splits "nats://one:4222,nats://two:4222". UsageError if the list is empty, or a URL can't be
/// read or holds a user or a password: those have options of their own, and messages show URLs.
std::vector<Server> parse_servers(const std::string& url);

/// UsageError if the options contradict each other, or a file is missing.
void check(const std::string& url, const Credentials& credentials, const Tls& tls);

/// Somebody must act: the credentials are wrong, TLS doesn't fit, or a stream is missing.
struct Misconfigured : BrokerFailed {
  using BrokerFailed::BrokerFailed;
};

struct Target {
  const std::string& url;
  const Credentials& credentials;
  const Tls& tls;
  /// For each server.
  std::chrono::milliseconds timeout;
  /// Sets callbacks, and returns the state that they use.
  std::function<Closure(natsOptions*)> listen = {};
  /// True if the connection is no longer wanted: no further server is tried.
  std::function<bool()> is_unwanted = {};
};

/// Connects to the first server that accepts; a broken connection isn't repaired. BrokerFailed if
/// none accepts, Misconfigured if one refuses, UsageError as for `check`: secrets are read now.
Connection connect(const Target& target);

/// A reply subject unique to this connection: "_INBOX.{uuid}". nats.c numbers its own per process,
/// and a forked child would repeat its parent's numbers.
std::string make_inbox();

/// A context for requests to the JetStream API under the prefix `api`.
ContextHandle use_jetstream(natsConnection* connection, const std::string& api);

/// Takes a server's description of a stream; BrokerFailed if it lacks the configuration.
StreamInfoHandle take_stream_info(jsStreamInfo* raw, const std::string& doing);

/// The error of such a request, in words: "Not Found (JetStream error 10059)".
std::string in_words(natsStatus status, jsErrCode code);

}  // namespace stela::nats

// How to reach a NATS server, and who we are to it.
#pragma once

#include <string>

namespace stela::nats {

/// At most one way of the four. Secrets are read from files when a connection is made, and stand in
/// no message and no log.
struct Credentials {
  /// With the file that holds the password.
  std::string user = {};
  std::string password_file = {};
  std::string token_file = {};
  /// A file with a JWT and its seed, as `nsc` writes it.
  std::string creds_file = {};
  /// The public key, with the file that holds its seed.
  std::string nkey = {};
  std::string nkey_seed_file = {};
};

struct Tls {
  /// Also when only one of the files is given. A server without TLS is refused then.
  bool required = false;
  /// The certificates that the server's is checked against; empty: those of the system.
  std::string ca_file = {};
  /// What we show to the server, with its key.
  std::string certificate_file = {};
  std::string key_file = {};
  /// The name that each server's certificate must have; empty: the host in that server's URL.
  std::string host_name = {};
};

/// Where the JetStream API is, if it isn't at "$JS.API". At most one of the two.
struct JetStreamApi {
  /// The domain of the servers that keep the streams, behind a leaf node: "$JS.{domain}.API".
  std::string domain = {};
  /// Where the account has imported the API of another one: "JS.shop.API".
  std::string prefix = {};
};

}  // namespace stela::nats

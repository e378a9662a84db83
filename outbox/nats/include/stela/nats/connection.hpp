// The address of a NATS server, and the client's credentials.
#pragma once

#include <string>

namespace stela::nats {

/// At most one of four kinds of credentials. Secrets are read from files when a connection is
/// opened, and appear in no message and no log. A file that others may read is refused: its mode is
/// 0600, or 0640 if root owns it.
struct Credentials {
  /// Needs the file that holds the password.
  std::string user = {};
  std::string password_file = {};
  std::string token_file = {};
  /// A file with a JWT and its seed, as `nsc` writes it.
  std::string creds_file = {};
  /// The public key. Needs the file that holds its seed.
  std::string nkey = {};
  std::string nkey_seed_file = {};
};

struct Tls {
  /// Refuse a server without TLS. Setting any of the files below has the same effect.
  bool required = false;
  /// The certificates that the server's certificate is checked against. Empty: those of the system.
  std::string ca_file = {};
  /// The client's certificate, and its key, which others must not be able to read.
  std::string certificate_file = {};
  std::string key_file = {};
  /// The name that each server's certificate must have. Empty: the host in that server's URL.
  std::string host_name = {};
};

/// The place of the JetStream API, if it isn't "$JS.API". Set at most one member.
struct JetStreamApi {
  /// The domain of the servers that keep the streams, for a leaf node: "$JS.{domain}.API".
  std::string domain = {};
  /// The prefix under which the account imports another account's API: "JS.shop.API".
  std::string prefix = {};
};

}  // namespace stela::nats

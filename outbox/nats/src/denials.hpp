// The permissions that the server denies a connection. nats.c reports a denial only to its error
// handler, so a waiting caller would merely time out.
#pragma once

#include "connect.hpp"

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace stela::nats {

/// Called in an error handler: the server's words, as 'Permissions Violation for Publish to
/// "SUBJECT"'.
std::string why_denied(natsStatus status);

/// The subject in those words; empty if there is none.
std::string_view denied_subject(std::string_view why) noexcept;

/// The denials of one connection. A denial ends it, which wakes all waiting callers.
/// Threads: any.
class Denials {
 public:
  /// Connects with these options and records denials from the start. Throws as `connect`.
  template <class Options>
  static Connection connect(const std::shared_ptr<Denials>& denials, const Options& options) {
    return nats::connect({.url = options.url,
                          .credentials = options.credentials,
                          .tls = options.tls,
                          .timeout = options.connect_timeout,
                          .listen = [&](natsOptions* raw) { return listen(denials, raw); }});
  }

  /// A denial of this subject doesn't end the connection: the subject is optional.
  void spare(const std::string& subject);
  /// Whether this subject was denied.
  bool has_denied(const std::string& spared) const;
  /// Misconfigured, naming the purpose, if the server has denied a required subject.
  void fail_if_any(const std::string& needed_for) const;

 private:
  static Closure listen(const std::shared_ptr<Denials>& denials, natsOptions* options);
  static void on_error(natsConnection* connection, natsSubscription*, natsStatus status,
                       void* denials);
  /// True if the denial ends the connection.
  bool take(const std::string& why);

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::set<std::string, std::less<>> spared_;
  std::set<std::string, std::less<>> denied_;
  std::string reason_;
};

}  // namespace stela::nats

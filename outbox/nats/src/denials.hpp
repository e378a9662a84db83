// What the server's permissions deny a connection, which nats.c tells its error handler alone: who
// waits for an answer would wait in vain, and hear of a time-out.
#pragma once

#include "connect.hpp"

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace stela::nats {

/// In an error handler: what the server said, as 'Permissions Violation for Publish to "SUBJECT"'.
std::string why_denied(natsStatus status);

/// The subject in that; empty if there is none.
std::string_view denied_subject(std::string_view why) noexcept;

/// Of one connection, which a denial ends: whoever waits hears of it at once.
/// Threads: any.
class Denials {
 public:
  /// A connection as the options say, which hears of denials from its first moment. As `connect`.
  template <class Options>
  static Connection connect(const std::shared_ptr<Denials>& denials, const Options& options) {
    return nats::connect({.url = options.url,
                          .credentials = options.credentials,
                          .tls = options.tls,
                          .timeout = options.connect_timeout,
                          .listen = [&](natsOptions* raw) { return listen(denials, raw); }});
  }

  /// The connection goes on where this subject is denied: it isn't needed.
  void spare(const std::string& subject);
  /// Whether that was denied.
  bool has_denied(const std::string& spared) const;
  /// Misconfigured if the server has denied what is needed, with what that was needed for.
  void fail_if_any(const std::string& needed_for) const;

 private:
  static Closure listen(const std::shared_ptr<Denials>& denials, natsOptions* options);
  static void on_error(natsConnection* connection, natsSubscription*, natsStatus status,
                       void* denials);
  /// True if the connection can't go on.
  bool take(const std::string& why);

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::set<std::string, std::less<>> spared_;
  std::set<std::string, std::less<>> denied_;
  std::string reason_;
};

}  // namespace stela::nats

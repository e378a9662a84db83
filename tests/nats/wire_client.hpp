// A client that writes what it is given: messages that no library makes.
#pragma once

#include <string>

namespace stela::test {

/// Threads: one at a time.
class WireClient {
 public:
  /// Of a server on loopback.
  explicit WireClient(const std::string& url);
  ~WireClient();
  WireClient(const WireClient&) = delete;
  WireClient& operator=(const WireClient&) = delete;

  /// `head` is all that comes before the payload: "NATS/1.0 503\r\n\r\n". Returns when the server
  /// has read it.
  void publish(const std::string& subject, const std::string& head,
               const std::string& payload = {});

 private:
  void write(const std::string& text) const;
  void read_until(const std::string& end);

  int socket_ = -1;
};

}  // namespace stela::test

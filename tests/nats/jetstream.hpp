// The broker as a bare client sees it: to look at streams, and to do to them what others may do.
#pragma once

#include <nats/nats.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stela::test {

struct RawMessage {
  std::uint64_t sequence = 0;
  std::string subject;
  std::string payload;
  std::map<std::string, std::string> headers;
};

/// Throws std::runtime_error with what the server said.
class JetStream {
 public:
  explicit JetStream(const std::string& url);
  ~JetStream();
  JetStream(const JetStream&) = delete;
  JetStream& operator=(const JetStream&) = delete;

  /// The names of all streams.
  std::vector<std::string> streams();
  std::int64_t count(const std::string& stream);
  std::uint64_t last_sequence(const std::string& stream);
  std::optional<RawMessage> message(const std::string& stream, std::uint64_t sequence);
  /// All that can be read.
  std::vector<RawMessage> messages(const std::string& stream);

  /// As `messages`, in one go: for streams that are long.
  std::vector<RawMessage> drain(const std::string& stream);

  /// With file storage, limits retention and `discard new`, then as `change` has it.
  void make_stream(const std::string& stream, const std::string& subjects,
                   const std::function<void(jsStreamConfig&)>& change = {});
  void update_stream(const std::string& stream, const std::function<void(jsStreamConfig&)>& change);
  /// The server of a cluster that leads the stream; empty while there is none.
  std::string leader_of(const std::string& stream);
  /// Another server must lead the stream from now on; false while none leads, or the servers don't
  /// know of it yet.
  [[nodiscard]] bool step_down(const std::string& stream);
  void delete_stream(const std::string& stream);
  void purge(const std::string& stream);
  void erase(const std::string& stream, std::uint64_t sequence);
  /// As another program would.
  void publish(const std::string& subject, const std::string& payload);
  /// The names of the consumers of a stream.
  std::vector<std::string> consumers(const std::string& stream);
  void delete_consumer(const std::string& stream, const std::string& consumer);

  jsCtx* context() noexcept { return context_; }

 private:
  bool let_step_down(const std::string& what);

  natsConnection* connection_ = nullptr;
  jsCtx* context_ = nullptr;
};

}  // namespace stela::test

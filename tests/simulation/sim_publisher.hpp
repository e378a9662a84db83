// A worker's client of the broker, and the line between them.
#pragma once

#include "simulation/sim_broker.hpp"

#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace stela::sim {

/// A worker's client. Bytes of one connection arrive in order; those of a dead one may arrive late,
/// or not at all.
class SimPublisher final : public Publisher {
 public:
  /// A session's sink must live as long as the world: late replies go to it, too.
  SimPublisher(SimBroker& broker, SimClock& clock, int worker);
  ~SimPublisher() override;

  bool can(Fence) const noexcept override { return true; }
  void connect(std::uint64_t session, AnswerSink& sink) override;
  void disconnect() noexcept override;
  void publish(const OutgoingMessage& message) override;
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override;
  void probe(std::uint64_t request) override;
  void flush() override {}

  /// 0 if there is none.
  std::uint64_t session() const noexcept { return connection_ ? connection_->session : 0; }

  /// The connection breaks without the worker's doing; `late` has all of its bytes arrive.
  void break_connection(bool late = false);
  /// It breaks behind the next message.
  void break_at_next() noexcept { breaks_at_next_ = true; }
  /// From now on nothing comes back on it, and nobody is told.
  void go_deaf() noexcept {
    if (connection_) connection_->deaf = true;
  }

 private:
  /// What stands between one client and the server.
  struct Connection {
    int worker = 0;
    std::uint64_t session = 0;
    bool alive = true;
    bool deaf = false;
    /// When its last byte arrives: nothing overtakes it.
    Time last_arrival = 0;
    Time last_reply = 0;
    /// Until when the line is busy with what was written, and with what was read back.
    Time writes_until = 0;
    Time reads_until = 0;
    /// For a client that reads one partition back after the other.
    Time looks_until = 0;
    std::uint64_t sent = 0;
    std::int64_t publishing = 0;
    /// After its death: how many of the requests that were sent still arrive.
    std::uint64_t arrives_until = UINT64_MAX;
    /// Not before then, all the same.
    Time late_until = 0;
    AnswerSink* sink = nullptr;
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  using Request = std::function<std::optional<Answer>(SimBroker&)>;
  void send(Request request, std::int64_t bytes, bool publishes);
  Time write(Connection& connection, std::int64_t bytes);
  void flush_buffer();
  /// `published` is when it was sent, of a message.
  static void arrive(SimBroker& broker, const ConnectionPtr& connection, std::uint64_t number,
                     std::optional<Time> published, const Request& request);
  static void reply(SimBroker& broker, const ConnectionPtr& connection,
                    std::optional<Time> published, Answer answer);
  static void look(SimBroker& broker, const ConnectionPtr& connection, PartitionId partition,
                   std::uint64_t request, std::uint64_t from);
  static Time read(SimBroker& broker, Connection& connection, PartitionId partition,
                   Answer& answer);
  static void lose(SimBroker& broker, Connection& connection, std::optional<Time> published);
  void die(bool late = false);

  SimBroker& broker_;
  SimClock& clock_;
  const int worker_;
  ConnectionPtr connection_;
  std::vector<std::pair<Request, std::int64_t>> buffer_;
  bool breaks_at_next_ = false;
};

}  // namespace stela::sim

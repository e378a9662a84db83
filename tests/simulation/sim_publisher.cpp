#include "simulation/sim_publisher.hpp"

#include <algorithm>
#include <utility>

namespace stela::sim {

namespace {

/// Of a message beside its payload, and of a question.
constexpr std::int64_t frame_bytes = 200;

}  // namespace

SimPublisher::SimPublisher(SimBroker& broker, SimClock& clock, int worker)
    : broker_{broker}, clock_{clock}, worker_{worker} {
  broker_.clients[worker_] = {[this] { break_connection(); }, [this] { flush_buffer(); }};
}

SimPublisher::~SimPublisher() {
  die();
  broker_.clients.erase(worker_);
}

void SimPublisher::connect(std::uint64_t session, AnswerSink& sink) {
  die();
  connection_ = std::make_shared<Connection>();
  connection_->session = session;
  connection_->worker = worker_;
  connection_->sink = &sink;
  World& world = broker_.world();
  const Time delay =
      2 * broker_.line().round_trip + world.chance.between(ms / 10, broker_.faults.slowest);
  const bool up = broker_.is_reachable(worker_) || broker_.clients_buffer;
  world.after(delay, [broker = &broker_, connection = connection_, up] {
    if (!connection->alive) return;
    Answer answer{.session = connection->session,
                  .kind = up && (broker->is_reachable(connection->worker) || broker->clients_buffer)
                              ? Answer::Kind::connected
                              : Answer::Kind::disconnected};
    if (answer.kind == Answer::Kind::disconnected) connection->alive = false;
    connection->sink->take(answer);
  });
}

void SimPublisher::disconnect() noexcept {
  die();
}

/// The client forgets the connection; what it sent is on its way, or in a buffer that is lost.
void SimPublisher::die(bool late) {
  if (!connection_) return;
  Chance& chance = broker_.world().chance;
  connection_->alive = false;
  if (connection_->publishing > 0) ++broker_.hits;
  broker_.truth().allow_duplicates(connection_->publishing);
  if (late || chance.happens(broker_.faults.late_bytes)) {
    connection_->late_until =
        broker_.world().now() + chance.between(0, broker_.faults.latest_bytes);
    connection_->arrives_until =
        late ? connection_->sent
             : static_cast<std::uint64_t>(chance.between(0, static_cast<Time>(connection_->sent)));
  } else {
    connection_->arrives_until = 0;
  }
  connection_.reset();
}

void SimPublisher::break_connection(bool late) {
  breaks_at_next_ = false;
  if (!connection_ || !connection_->alive || broker_.clients_buffer) return;
  const std::uint64_t session = connection_->session;
  AnswerSink& sink = *connection_->sink;
  die(late);
  sink.take({.session = session, .kind = Answer::Kind::disconnected, .detail = "broken"});
}

void SimPublisher::flush_buffer() {
  for (auto& [request, bytes] : std::exchange(buffer_, {})) send(std::move(request), bytes, true);
}

void SimPublisher::publish(const OutgoingMessage& outgoing) {
  Sent message{.id = std::string{outgoing.message_id},
               .subject = "sim." + outgoing.partition.label(),
               .size = outgoing.event.payload.size(),
               .store_id = std::string{outgoing.store_id},
               .event = outgoing.event.sequence.value(),
               .redelivery = outgoing.redelivery};
  if (outgoing.predecessor) {
    const std::uint64_t last = outgoing.predecessor->broker_sequence;
    if (broker_.fence() == Fence::subject) {
      message.expected_last_subject_sequence = last;
    } else {
      message.expected_last_sequence = last;
      message.expected_last_id = outgoing.predecessor->message_id;
    }
  }
  const auto bytes = frame_bytes + static_cast<std::int64_t>(message.size);
  send([message = std::move(message), partition = outgoing.partition, request = outgoing.request](
           SimBroker& broker) { return broker.publish(partition, message, request); },
       bytes, true);
}

void SimPublisher::read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) {
  if (!connection_) return;
  send(
      [=, connection = connection_](SimBroker& broker) {
        const auto look_now = [=, &broker] { look(broker, connection, partition, request, from); };
        broker.world().at(broker.answer_questions(1), look_now);
        return std::nullopt;
      },
      frame_bytes, false);
}

/// The server comes to the question, and what it finds is asked for message by message.
void SimPublisher::look(SimBroker& broker, const ConnectionPtr& connection, PartitionId partition,
                        std::uint64_t request, std::uint64_t from) {
  if (!connection->alive || !broker.is_up()) return;
  std::optional<Answer> answer = broker.read_back(partition, request, from);
  if (!answer) return;
  const Time at = read(broker, *connection, partition, *answer);
  broker.world().at(at, [&broker, connection, answer = *std::move(answer)] {
    reply(broker, connection, std::nullopt, answer);
  });
}

/// When the messages are there. What takes long is cut off: the next read-back goes on behind it.
Time SimPublisher::read(SimBroker& broker, Connection& connection, PartitionId partition,
                        Answer& answer) {
  const Time now = broker.world().now();
  if (answer.found.empty() && !broker.clients_queue) return now;
  Time asked = broker.answer_questions(answer.found.size()) + broker.line().round_trip;
  if (broker.clients_queue) {
    asked = connection.looks_until =
        std::max(connection.looks_until, now) + 2 * broker.line().round_trip;
  }
  std::size_t count = 0;
  for (const FoundMessage& found : answer.found) {
    const Stored* const stored = broker.stream(partition).find(found.broker_sequence);
    const auto bytes = frame_bytes + static_cast<std::int64_t>(stored->message.size) * 4 / 3;
    connection.reads_until = std::max(connection.reads_until, now) + broker.line().time_for(bytes);
    ++count;
    if (count > 1 && connection.reads_until > now + broker.longest_read) break;
  }
  if (count < answer.found.size()) {
    answer.found.resize(count);
    answer.last_sequence = answer.found.back().broker_sequence;
    answer.has_more = true;
  }
  return std::max(asked, connection.reads_until);
}

void SimPublisher::probe(std::uint64_t request) {
  send([=](SimBroker&) { return Answer{.request = request, .kind = Answer::Kind::alive}; },
       frame_bytes, false);
}

/// When the last of so many bytes is on the line. Waits for room in the socket.
Time SimPublisher::write(Connection& connection, std::int64_t bytes) {
  const Line& line = broker_.line();
  connection.writes_until = std::max(connection.writes_until, clock_.here()) + line.time_for(bytes);
  clock_.block_until(connection.writes_until - line.time_for(socket_bytes));
  return connection.writes_until;
}

void SimPublisher::send(Request request, std::int64_t bytes, bool publishes) {
  if (broker_.clients_buffer && publishes && !broker_.is_up()) {
    buffer_.emplace_back(std::move(request), bytes);
    return;
  }
  if (!connection_) return;
  World& world = broker_.world();
  const Time delay =
      broker_.line().round_trip / 2 + world.chance.between(ms / 20, broker_.faults.slowest);
  Connection& connection = *connection_;
  connection.last_arrival = std::max(connection.last_arrival, write(connection, bytes) + delay);
  const std::uint64_t number = ++connection.sent;
  if (publishes) ++connection.publishing;
  const auto published = publishes ? std::optional{clock_.here()} : std::nullopt;
  world.at(connection.last_arrival, [broker = &broker_, connection = connection_, number, published,
                                     request = std::move(request)] {
    arrive(*broker, connection, number, published, request);
  });
  if (!publishes) return;
  if (breaks_at_next_) return break_connection();
  if (!broker_.on_message) return;
  if (const auto late = broker_.on_message(worker_)) break_connection(*late);
}

void SimPublisher::arrive(SimBroker& broker, const ConnectionPtr& connection, std::uint64_t number,
                          std::optional<Time> published, const Request& request) {
  if (connection->alive) {
    if (!broker.is_up()) return;
    if (std::optional<Answer> answer = request(broker)) {
      return reply(broker, connection, published, *std::move(answer));
    }
    return lose(broker, *connection, published);
  }
  // A dead connection's bytes: the server takes them, and nobody hears of it.
  if (number > connection->arrives_until || !broker.is_up()) return;
  if (connection->late_until <= broker.world().now()) {
    (void)request(broker);
    return;
  }
  broker.world().at(connection->late_until, [&broker, request] {
    if (broker.is_up()) (void)request(broker);
  });
}

/// Nobody hears what became of a request.
void SimPublisher::lose(SimBroker& broker, Connection& connection, std::optional<Time> published) {
  if (!published) return;
  ++broker.hits;
  --connection.publishing;
  broker.truth().allow_duplicates(1);
}

void SimPublisher::reply(SimBroker& broker, const ConnectionPtr& connection,
                         std::optional<Time> published, Answer answer) {
  World& world = broker.world();
  const bool is_lost = connection->deaf || world.chance.happens(broker.faults.lose_reply) ||
                       (broker.on_reply && broker.on_reply(connection->worker));
  if (is_lost) return lose(broker, *connection, published);
  Time delay = broker.line().round_trip / 2 + world.chance.between(ms / 20, broker.faults.slowest);
  if (!connection->alive) delay += world.chance.between(ms, 20 * ms);
  connection->last_reply = std::max(connection->last_reply, world.now() + delay);
  answer.session = connection->session;
  // Nobody waits that long: it may be sent again meanwhile.
  if (published && connection->last_reply > *published + second) {
    broker.truth().allow_duplicates(1);
  }
  // A reply of a session that is over may still reach the worker: telling them apart is its task.
  world.at(connection->last_reply, [connection, published, answer = std::move(answer)] {
    if (published) --connection->publishing;
    connection->sink->take(answer);
  });
}

}  // namespace stela::sim

#include "simulation/sim_broker.hpp"

#include <algorithm>
#include <utility>

namespace stela::sim {

// --- the server

JetStreamModel& SimBroker::stream(PartitionId partition) {
  const PartitionId place = fence_ == Fence::stream ? partition : PartitionId{0};
  return streams_.try_emplace(place, limits_).first->second;
}

void SimBroker::go_down() {
  up_ = false;
  break_all();
}

void SimBroker::break_all() {
  for (const auto& [worker, client] : std::map{clients}) client.broken();
}

void SimBroker::write_foreign(PartitionId partition) {
  stream(partition).publish({.id = {}, .subject = subject(partition)}, world_.now());
}

std::int64_t SimBroker::last_event(PartitionId partition) {
  const JetStreamModel& stream = this->stream(partition);
  if (fence_ == Fence::subject) {
    const Stored* const last = stream.last_of(subject(partition));
    return last != nullptr ? last->message.event : 0;
  }
  std::int64_t last = 0;
  for (const Stored& stored : stream.messages()) last = std::max(last, stored.message.event);
  return last;
}

std::uint64_t SimBroker::last_sequence(PartitionId partition) {
  const JetStreamModel& stream = this->stream(partition);
  if (fence_ != Fence::subject) return stream.last_sequence();
  const Stored* const last = stream.last_of(subject(partition));
  return last != nullptr ? last->sequence : 0;
}

PartitionId SimBroker::partition_of(std::string_view subject) {
  const std::string_view label = subject.substr(subject.find('.') + 1);
  return label == "all" ? PartitionId{0} : PartitionId{std::stoi(std::string{label.substr(1)}) + 1};
}

void SimBroker::come_back() {
  up_ = true;
  for (auto& [partition, stream] : streams_) stream.restart(world_.now());
  for (const auto& [worker, client] : std::map{clients}) client.back();
}

std::optional<Outage> SimBroker::outage_of(PartitionId partition) const {
  const auto found = outages.find(partition);
  if (found == outages.end() || found->second.until <= world_.now()) return std::nullopt;
  return found->second.kind;
}

std::optional<Answer> SimBroker::publish(PartitionId partition, const Sent& message,
                                         std::uint64_t request) {
  switch (outage_of(partition).value_or(Outage::count)) {
    case Outage::silent:
    case Outage::no_quorum:
      return std::nullopt;
    case Outage::mute:
      (void)store(partition, message, request);
      return std::nullopt;
    case Outage::offline:
      return Answer{.request = request, .kind = Answer::Kind::full, .detail = "offline"};
    case Outage::missing:
      return Answer{.request = request, .kind = Answer::Kind::misconfigured, .detail = "missing"};
    case Outage::count:
      break;
  }
  return store(partition, message, request);
}

std::optional<Answer> SimBroker::read_back(PartitionId partition, std::uint64_t request,
                                           std::uint64_t from) {
  switch (outage_of(partition).value_or(Outage::count)) {
    case Outage::silent:
    case Outage::mute:
      return std::nullopt;
    case Outage::offline:
      return Answer{.request = request, .kind = Answer::Kind::full, .detail = "offline"};
    case Outage::missing:
      return Answer{.request = request, .kind = Answer::Kind::misconfigured, .detail = "missing"};
    case Outage::no_quorum:
    case Outage::count:
      break;
  }
  return find(partition, request, from);
}

Answer SimBroker::store(PartitionId partition, const Sent& message, std::uint64_t request) {
  Answer answer{.request = request, .kind = Answer::Kind::stored};
  if (forbids_) return {.kind = Answer::Kind::misconfigured};
  if (missing_) {
    answer.kind = Answer::Kind::misconfigured;
  } else if (too_large.contains(message.event)) {
    answer.kind = Answer::Kind::refused;
  } else if (full_) {
    answer.kind = Answer::Kind::full;
  } else if (rejected.contains(message.event) || refusals > 0) {
    refusals = std::max(0, refusals - 1);
    answer.kind = Answer::Kind::rejected;
  }
  if (answer.kind == Answer::Kind::stored) {
    JetStreamModel& stream = this->stream(partition);
    const PublishResult result = stream.publish(message, world_.now());
    answer.broker_sequence = result.sequence;
    if (result.error != StreamError::none || result.duplicate) {
      answer.kind = Answer::Kind::stored_before;
      answer.detail = result.duplicate                                   ? "duplicate"
                      : result.error == StreamError::wrong_last_sequence ? "wrong sequence"
                                                                         : "wrong id";
    } else {
      world_.mix(result.sequence * 31 + static_cast<std::uint64_t>(message.event));
      truth_.on_stored(partition, *stream.find(result.sequence));
      if (on_stored) std::function{on_stored}(partition, result.sequence);
    }
  }
  return answer;
}

Answer SimBroker::find(PartitionId partition, std::uint64_t request, std::uint64_t from) {
  Answer answer{.request = request, .kind = Answer::Kind::read_back};
  if (missing_) {
    answer.kind = Answer::Kind::misconfigured;
    return answer;
  }
  const JetStreamModel& stream = this->stream(partition);
  const auto found = [](const Stored& stored) {
    return FoundMessage{.broker_sequence = stored.sequence,
                        .message_id = stored.message.id,
                        .is_ours = !stored.message.store_id.empty(),
                        .store_id = stored.message.store_id,
                        .sequence = GlobalSequence{stored.message.event},
                        .redelivery = stored.message.redelivery};
  };
  answer.first_sequence = stream.first_sequence();
  if (fence_ == Fence::subject) {
    if (const Stored* const last = stream.last_of(subject(partition))) {
      answer.last_sequence = last->sequence;
      answer.found.push_back(found(*last));
    }
    return answer;
  }
  answer.last_sequence = stream.last_sequence();
  for (std::uint64_t at = std::max(from, answer.first_sequence); at <= answer.last_sequence; ++at) {
    if (const Stored* const stored = stream.find(at)) answer.found.push_back(found(*stored));
  }
  return answer;
}

// --- the client

SimPublisher::SimPublisher(SimBroker& broker, int worker) : broker_{broker}, worker_{worker} {
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
  const Time delay = world.chance.between(ms / 10, broker_.faults.slowest);
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
  for (Request& request : std::exchange(buffer_, {})) send(std::move(request), true);
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
  send([message = std::move(message), partition = outgoing.partition, request = outgoing.request](
           SimBroker& broker) { return broker.publish(partition, message, request); },
       true);
}

void SimPublisher::read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) {
  send([=](SimBroker& broker) { return broker.read_back(partition, request, from); }, false);
}

void SimPublisher::probe(std::uint64_t request) {
  send([=](SimBroker&) { return Answer{.request = request, .kind = Answer::Kind::alive}; }, false);
}

void SimPublisher::send(Request request, bool publishes) {
  if (broker_.clients_buffer && publishes && !broker_.is_up()) {
    buffer_.push_back(std::move(request));
    return;
  }
  if (!connection_) return;
  World& world = broker_.world();
  const Time delay = world.chance.between(ms / 20, broker_.faults.slowest);
  Connection& connection = *connection_;
  connection.last_arrival = std::max(connection.last_arrival, world.now() + delay);
  const std::uint64_t number = ++connection.sent;
  if (publishes) ++connection.publishing;
  const auto published = publishes ? std::optional{world.now()} : std::nullopt;
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
  Time delay = world.chance.between(ms / 20, broker.faults.slowest);
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

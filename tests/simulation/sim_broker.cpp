#include "simulation/sim_broker.hpp"

#include <algorithm>
#include <utility>

namespace stela::sim {

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

Time SimBroker::answer_questions(std::size_t count) noexcept {
  questions_until_ =
      std::max(questions_until_, world_.now()) + static_cast<Time>(count) * line_.question;
  return questions_until_;
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
    case Outage::denied:
      return Answer{.request = request, .kind = Answer::Kind::misconfigured, .detail = "denied"};
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
    case Outage::denied:
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
    const Stored* const last = stream.last_of(subject(partition));
    if (last == nullptr) return answer;
    answer.last_sequence = last->sequence;
    for (std::uint64_t at = std::min(from, last->sequence); at <= last->sequence; ++at) {
      const Stored* const stored = stream.find(at);
      if (stored != nullptr && stored->message.subject == last->message.subject) {
        answer.found.push_back(found(*stored));
      }
    }
    return answer;
  }
  answer.last_sequence = stream.last_sequence();
  for (std::uint64_t at = std::max(from, answer.first_sequence); at <= answer.last_sequence; ++at) {
    if (const Stored* const stored = stream.find(at)) answer.found.push_back(found(*stored));
  }
  return answer;
}

}  // namespace stela::sim

#include "memory_broker.hpp"

#include <algorithm>
#include <cstring>

namespace stela::bench {

std::uint64_t MemoryBroker::store(std::string_view subject, std::string_view id,
                                  std::string_view headers, std::string_view payload) {
  for (const std::string_view bytes : {subject, id, headers, payload}) copy(bytes);
  last_id_ = id;
  return ++last_;
}

void MemoryBroker::copy(std::string_view bytes) {
  if (bytes.size() > buffer_.size() - used_) used_ = 0;
  const std::size_t size = std::min(bytes.size(), buffer_.size());
  std::memcpy(buffer_.data() + used_, bytes.data(), size);
  used_ += size;
}

void MemoryPublisher::connect(std::uint64_t session, AnswerSink& sink) {
  session_ = session;
  sink_ = &sink;
  sink.take({.session = session, .kind = Answer::Kind::connected});
}

void MemoryPublisher::publish(const OutgoingMessage& message) {
  Answer answer{
      .session = session_, .request = message.request, .kind = Answer::Kind::stored_before};
  if (message.predecessor && message.predecessor->broker_sequence == broker_.last()) {
    answer.kind = Answer::Kind::stored;
    answer.broker_sequence = broker_.store(message.event.stream.name(), message.message_id,
                                           message.event.metadata, message.event.payload);
    last_event_ = message.event.sequence;
    if (store_id_.empty()) store_id_ = message.store_id;
  }
  sink_->take(std::move(answer));
}

void MemoryPublisher::read_back(std::uint64_t request, PartitionId, std::uint64_t from) {
  Answer answer{.session = session_, .request = request, .kind = Answer::Kind::read_back};
  answer.last_sequence = broker_.last();
  answer.first_sequence = std::min<std::uint64_t>(answer.last_sequence, 1);
  if (answer.last_sequence >= from) {
    answer.found.push_back({.broker_sequence = broker_.last(),
                            .message_id = broker_.last_id(),
                            .is_ours = true,
                            .store_id = store_id_,
                            .sequence = last_event_});
  }
  sink_->take(std::move(answer));
}

void MemoryPublisher::probe(std::uint64_t request) {
  sink_->take({.session = session_, .request = request, .kind = Answer::Kind::alive});
}

}  // namespace stela::bench

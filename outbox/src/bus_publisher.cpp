#include <stela/outbox/bus_publisher.hpp>

#include <exception>
#include <new>
#include <utility>

namespace stela {
namespace {

/// Turns a listener's exception into a broker's answer.
void refuse(Answer& answer, const std::exception_ptr& error) {
  answer.kind = Answer::Kind::rejected;
  answer.failure = FailureClass::rejected;
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    // Not the message's fault: any other message could have met this.
    answer.kind = Answer::Kind::full;
    answer.failure = FailureClass::other;
    answer.detail = "a listener had too little memory";
  } catch (const std::exception& e) {
    answer.detail = e.what();
  } catch (...) {
    answer.detail = "a listener threw something other than a std::exception";
  }
}

}  // namespace

void BusPublisher::connect(std::uint64_t session, AnswerSink& sink) {
  sink_ = &sink;
  session_ = session;
  sink.take({.session = session, .kind = Answer::Kind::connected});
}

void BusPublisher::publish(const OutgoingMessage& message) {
  if (sink_ == nullptr) return;
  std::exception_ptr error;
  Answer answer{.session = session_, .request = message.request, .kind = Answer::Kind::stored};
  if (bus_.deliver(message.event, &error)) {
    answer.broker_sequence = ++delivered_;
  } else {
    refuse(answer, error);
  }
  sink_->take(std::move(answer));
}

void BusPublisher::read_back(std::uint64_t request, PartitionId, std::uint64_t) {
  // A bus keeps no messages, so there is nothing to find.
  if (sink_ == nullptr) return;
  sink_->take({.session = session_, .request = request, .kind = Answer::Kind::read_back});
}

void BusPublisher::probe(std::uint64_t request) {
  if (sink_ == nullptr) return;
  sink_->take({.session = session_, .request = request, .kind = Answer::Kind::alive});
}

}  // namespace stela

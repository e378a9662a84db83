#include <stela/outbox/bus_publisher.hpp>

#include <exception>
#include <string>
#include <utility>

namespace stela {
namespace {

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "a listener threw what isn't a std::exception";
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
    answer.kind = Answer::Kind::rejected;
    answer.detail = what_of(error);
  }
  sink_->take(std::move(answer));
}

void BusPublisher::read_back(std::uint64_t request, PartitionId, std::uint64_t) {
  // Nothing stays on a bus: there is nothing to find.
  if (sink_ == nullptr) return;
  sink_->take({.session = session_, .request = request, .kind = Answer::Kind::read_back});
}

void BusPublisher::probe(std::uint64_t request) {
  if (sink_ == nullptr) return;
  sink_->take({.session = session_, .request = request, .kind = Answer::Kind::alive});
}

}  // namespace stela

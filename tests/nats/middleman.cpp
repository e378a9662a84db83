#include "nats/middleman.hpp"

#include <stdexcept>
#include <utility>

namespace stela::test {
namespace {

void require_ok(natsStatus status) {
  if (status != NATS_OK) throw std::runtime_error{natsStatus_GetText(status)};
}

}  // namespace

Middleman::Middleman(const std::string& url) {
  require_ok(natsConnection_ConnectTo(&connection_, url.c_str()));
  const std::string all = std::string{prefix} + ".>";
  require_ok(natsConnection_Subscribe(&subscription_, connection_, all.c_str(), take, this));
  require_ok(natsConnection_Flush(connection_));
}

Middleman::~Middleman() {
  natsConnection_Close(connection_);
  natsSubscription_Destroy(subscription_);
  natsConnection_Destroy(connection_);
}

void Middleman::say(const std::string& status, const std::string& description, int unsent,
                    int times) {
  const std::lock_guard lock{mutex_};
  status_ = status;
  description_ = description;
  unsent_ = unsent;
  times_ = times;
}

void Middleman::gather_reads(std::size_t count) {
  const std::lock_guard lock{mutex_};
  reads_wanted_ = count;
}

std::vector<std::string> Middleman::requests() const {
  const std::lock_guard lock{mutex_};
  return requests_;
}

void Middleman::say_status(natsConnection* connection, const std::string& reply) {
  if (times_ == 0) return;
  --times_;
  natsMsg* message = nullptr;
  require_ok(natsMsg_Create(&message, reply.c_str(), nullptr, "", 0));
  natsMsgHeader_Set(message, "Status", status_.c_str());
  natsMsgHeader_Set(message, "Description", description_.c_str());
  natsMsgHeader_Set(message, "Nats-Pending-Messages", std::to_string(unsent_).c_str());
  natsConnection_PublishMsg(connection, message);
  natsMsg_Destroy(message);
}

void Middleman::pass_on(natsConnection* connection, const Request& request) {
  const std::string real = "$JS.API" + request.subject.substr(std::string{prefix}.size());
  natsConnection_PublishRequestString(connection, real.c_str(), request.reply.c_str(),
                                      request.data.c_str());
}

void Middleman::take(natsConnection* connection, const Request& request) {
  const std::lock_guard lock{mutex_};
  if (request.subject.find(".STREAM.MSG.GET.") != std::string::npos) {
    reads_.push_back(request);
    if (reads_.size() < reads_wanted_) return;
    for (const Request& each : std::exchange(reads_, {})) pass_on(connection, each);
    return;
  }
  if (request.subject.find(".CONSUMER.MSG.NEXT.") != std::string::npos) {
    requests_.push_back(request.data);
    say_status(connection, request.reply);
  }
  pass_on(connection, request);
}

void Middleman::take(natsConnection* connection, natsSubscription*, natsMsg* message, void* self) {
  const Request request{natsMsg_GetSubject(message), natsMsg_GetReply(message),
                        std::string{natsMsg_GetData(message),
                                    static_cast<std::size_t>(natsMsg_GetDataLength(message))}};
  natsMsg_Destroy(message);
  static_cast<Middleman*>(self)->take(connection, request);
}

}  // namespace stela::test

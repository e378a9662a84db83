#include "nats/early_statuses.hpp"

#include <stdexcept>

namespace stela::test {
namespace {

void require(natsStatus status) {
  if (status != NATS_OK) throw std::runtime_error{natsStatus_GetText(status)};
}

}  // namespace

EarlyStatuses::EarlyStatuses(const std::string& url) {
  require(natsConnection_ConnectTo(&connection_, url.c_str()));
  const std::string all = std::string{prefix} + ".>";
  require(natsConnection_Subscribe(&subscription_, connection_, all.c_str(), pass_on, this));
  require(natsConnection_Flush(connection_));
}

EarlyStatuses::~EarlyStatuses() {
  natsConnection_Close(connection_);
  natsSubscription_Destroy(subscription_);
  natsConnection_Destroy(connection_);
}

void EarlyStatuses::say(const std::string& status, const std::string& description, int unsent,
                        int times) {
  const std::lock_guard lock{mutex_};
  status_ = status;
  description_ = description;
  unsent_ = unsent;
  times_ = times;
}

std::vector<std::string> EarlyStatuses::requests() const {
  const std::lock_guard lock{mutex_};
  return requests_;
}

void EarlyStatuses::say_status(natsConnection* connection, const char* reply) {
  if (times_ == 0) return;
  --times_;
  natsMsg* message = nullptr;
  require(natsMsg_Create(&message, reply, nullptr, "", 0));
  natsMsgHeader_Set(message, "Status", status_.c_str());
  natsMsgHeader_Set(message, "Description", description_.c_str());
  natsMsgHeader_Set(message, "Nats-Pending-Messages", std::to_string(unsent_).c_str());
  natsConnection_PublishMsg(connection, message);
  natsMsg_Destroy(message);
}

void EarlyStatuses::pass_on(natsConnection* connection, natsSubscription*, natsMsg* message,
                            void* self) {
  auto& early = *static_cast<EarlyStatuses*>(self);
  const std::string subject = natsMsg_GetSubject(message);
  const char* const reply = natsMsg_GetReply(message);
  const std::string data{natsMsg_GetData(message),
                         static_cast<std::size_t>(natsMsg_GetDataLength(message))};
  if (subject.find(".CONSUMER.MSG.NEXT.") != std::string::npos) {
    const std::lock_guard lock{early.mutex_};
    early.requests_.push_back(data);
    early.say_status(connection, reply);
  }
  const std::string real = "$JS.API" + subject.substr(std::string{prefix}.size());
  natsConnection_PublishRequestString(connection, real.c_str(), reply, data.c_str());
  natsMsg_Destroy(message);
}

}  // namespace stela::test

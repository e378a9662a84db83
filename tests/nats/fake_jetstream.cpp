#include "nats/fake_jetstream.hpp"

#include <stdexcept>

namespace stela::test {
namespace {

void require(natsStatus status) {
  if (status != NATS_OK) throw std::runtime_error{natsStatus_GetText(status)};
}

bool begins(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

constexpr const char* stream_info =
    R"({"config":{"name":"SHOP","subjects":["shop.>"],"retention":"limits","storage":"file",)"
    R"("num_replicas":)";
constexpr const char* stream_state =
    R"(},"created":"2026-01-01T00:00:00Z",)"
    R"("state":{"messages":0,"bytes":0,"first_seq":1,"last_seq":0}})";

}  // namespace

FakeJetStream::FakeJetStream() {
  require(natsConnection_ConnectTo(&connection_, url().c_str()));
  const auto take = [this](natsSubscription*& subscription, const char* subjects) {
    require(natsConnection_Subscribe(&subscription, connection_, subjects, answer, this));
  };
  take(streams_, "$JS.API.STREAM.>");
  take(consumers_, "$JS.API.CONSUMER.INFO.>");
  take(messages_, "$JS.API.CONSUMER.MSG.NEXT.>");
  take(creations_, "$JS.API.CONSUMER.CREATE.>");
  require(natsConnection_Flush(connection_));
}

FakeJetStream::~FakeJetStream() {
  natsConnection_Close(connection_);
  for (natsSubscription* each : {streams_, consumers_, messages_, creations_}) {
    natsSubscription_Destroy(each);
  }
  natsConnection_Destroy(connection_);
}

void FakeJetStream::tell_of_stream(const std::string& info) {
  const std::lock_guard lock{mutex_};
  stream_ = info;
}

void FakeJetStream::delete_consumer() {
  require(natsSubscription_Unsubscribe(messages_));
  require(natsConnection_Flush(connection_));
}

void FakeJetStream::refuse(const std::string& status, const std::string& description) {
  const std::lock_guard lock{mutex_};
  status_ = status;
  description_ = description;
}

std::string FakeJetStream::info_of(const std::string& subject) {
  const std::lock_guard lock{mutex_};
  if (begins(subject, "$JS.API.CONSUMER.CREATE.SHOP")) return made_;
  if (begins(subject, "$JS.API.STREAM.INFO.SHOP")) {
    if (!stream_.empty()) return stream_;
    return stream_info + std::string{"1"} + stream_state;
  }
  if (begins(subject, "$JS.API.CONSUMER.INFO.SHOP")) {
    return R"({"error":{"code":404,"err_code":10014,"description":"consumer not found"}})";
  }
  return R"({"error":{"code":500,"err_code":10000,"description":"not faked"}})";
}

void FakeJetStream::give_status(natsConnection* connection, const char* reply) {
  ++requests_;
  const std::lock_guard lock{mutex_};
  if (status_.empty()) return;
  natsMsg* message = nullptr;
  require(natsMsg_Create(&message, reply, nullptr, "", 0));
  natsMsgHeader_Set(message, "Status", status_.c_str());
  natsMsgHeader_Set(message, "Description", description_.c_str());
  natsConnection_PublishMsg(connection, message);
  natsMsg_Destroy(message);
}

void FakeJetStream::answer(natsConnection* connection, natsSubscription*, natsMsg* message,
                           void* self) {
  auto& fake = *static_cast<FakeJetStream*>(self);
  const std::string subject = natsMsg_GetSubject(message);
  const char* const reply = natsMsg_GetReply(message);
  if (begins(subject, "$JS.API.CONSUMER.MSG.NEXT.")) {
    fake.give_status(connection, reply);
  } else {
    natsConnection_PublishString(connection, reply, fake.info_of(subject).c_str());
  }
  natsMsg_Destroy(message);
}

}  // namespace stela::test

#include "nats/jetstream.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <utility>

namespace stela::test {
namespace {

void require(natsStatus status, const std::string& doing, jsErrCode code = {}) {
  if (status == NATS_OK) return;
  throw std::runtime_error{doing + ": " + natsStatus_GetText(status) + ' ' +
                           std::to_string(static_cast<int>(code))};
}

/// Only a leader answers, and there is none during an election.
bool means_no_leader(natsStatus status) {
  return status == NATS_TIMEOUT || status == NATS_NO_RESPONDERS;
}

RawMessage copy_of(natsMsg* message) {
  RawMessage copy{.sequence = natsMsg_GetSequence(message),
                  .subject = natsMsg_GetSubject(message),
                  .payload = {natsMsg_GetData(message),
                              static_cast<std::size_t>(natsMsg_GetDataLength(message))},
                  .headers = {}};
  const char** keys = nullptr;
  int count = 0;
  if (natsMsgHeader_Keys(message, &keys, &count) != NATS_OK) return copy;
  for (int i = 0; i < count; ++i) {
    const char* value = nullptr;
    natsMsgHeader_Get(message, keys[i], &value);
    copy.headers[keys[i]] = value;
  }
  free(static_cast<void*>(keys));
  return copy;
}

}  // namespace

JetStream::JetStream(const std::string& url) {
  require(natsConnection_ConnectTo(&connection_, url.c_str()), "connecting");
  require(natsConnection_JetStream(&context_, connection_, nullptr), "using JetStream");
}

JetStream::~JetStream() {
  jsCtx_Destroy(context_);
  natsConnection_Destroy(connection_);
}

std::vector<std::string> JetStream::streams() {
  jsStreamNamesList* list = nullptr;
  const natsStatus status = js_StreamNames(&list, context_, nullptr, nullptr);
  std::vector<std::string> names;
  if (status == NATS_NOT_FOUND) return names;
  require(status, "listing streams");
  for (int i = 0; i < list->Count; ++i) names.emplace_back(list->List[i]);
  jsStreamNamesList_Destroy(list);
  return names;
}

std::int64_t JetStream::count(const std::string& stream) {
  jsStreamInfo* info = nullptr;
  require(js_GetStreamInfo(&info, context_, stream.c_str(), nullptr, nullptr), "reading a stream");
  const auto messages = static_cast<std::int64_t>(info->State.Msgs);
  jsStreamInfo_Destroy(info);
  return messages;
}

std::uint64_t JetStream::last_sequence(const std::string& stream) {
  jsStreamInfo* info = nullptr;
  require(js_GetStreamInfo(&info, context_, stream.c_str(), nullptr, nullptr), "reading a stream");
  const std::uint64_t last = info->State.LastSeq;
  jsStreamInfo_Destroy(info);
  return last;
}

std::string JetStream::leader_of(const std::string& stream) {
  jsStreamInfo* info = nullptr;
  const natsStatus status = js_GetStreamInfo(&info, context_, stream.c_str(), nullptr, nullptr);
  if (means_no_leader(status)) return "";
  require(status, "reading a stream");
  const std::unique_ptr<jsStreamInfo, void (*)(jsStreamInfo*)> owned{info, jsStreamInfo_Destroy};
  const bool has_leader = info->Cluster != nullptr && info->Cluster->Leader != nullptr;
  return has_leader ? info->Cluster->Leader : "";
}

bool JetStream::step_down(const std::string& stream) {
  return let_step_down("STREAM.LEADER.STEPDOWN." + stream);
}

bool JetStream::let_step_down(const std::string& what) {
  natsMsg* raw = nullptr;
  const natsStatus status =
      natsConnection_RequestString(&raw, connection_, ("$JS.API." + what).c_str(), "", 5'000);
  if (means_no_leader(status)) return false;
  require(status, "asking for another leader");
  const std::unique_ptr<natsMsg, void (*)(natsMsg*)> reply{raw, natsMsg_Destroy};
  const std::string answer{natsMsg_GetData(raw),
                           static_cast<std::size_t>(natsMsg_GetDataLength(raw))};
  return answer.find("\"success\":true") != std::string::npos;
}

std::vector<RawMessage> JetStream::drain(const std::string& stream) {
  const auto expected = static_cast<std::size_t>(count(stream));
  jsSubOptions options;
  jsSubOptions_Init(&options);
  options.Stream = stream.c_str();
  options.Ordered = true;
  natsSubscription* subscription = nullptr;
  require(js_SubscribeSync(&subscription, context_, ">", nullptr, &options, nullptr),
          "subscribing");
  const std::unique_ptr<natsSubscription, void (*)(natsSubscription*)> owned{
      subscription, natsSubscription_Destroy};
  std::vector<RawMessage> all;
  while (all.size() < expected) {
    natsMsg* raw = nullptr;
    require(natsSubscription_NextMsg(&raw, subscription, 10'000),
            "reading on in " + stream + " behind " + std::to_string(all.size()) + " of " +
                std::to_string(expected) + " messages");
    const std::unique_ptr<natsMsg, void (*)(natsMsg*)> message{raw, natsMsg_Destroy};
    jsMsgMetaData* meta = nullptr;
    require(natsMsg_GetMetaData(&meta, raw), "reading where a message stands");
    all.push_back(copy_of(raw));
    all.back().sequence = meta->Sequence.Stream;
    jsMsgMetaData_Destroy(meta);
  }
  return all;
}

std::vector<std::string> JetStream::consumers(const std::string& stream) {
  jsConsumerNamesList* list = nullptr;
  require(js_ConsumerNames(&list, context_, stream.c_str(), nullptr, nullptr), "listing consumers");
  std::vector<std::string> names(list->List, list->List + list->Count);
  jsConsumerNamesList_Destroy(list);
  return names;
}

std::optional<RawMessage> JetStream::message(const std::string& stream, std::uint64_t sequence) {
  natsMsg* message = nullptr;
  const natsStatus status =
      js_GetMsg(&message, context_, stream.c_str(), sequence, nullptr, nullptr);
  if (status == NATS_NOT_FOUND) return std::nullopt;
  require(status, "reading a message");
  const std::unique_ptr<natsMsg, void (*)(natsMsg*)> owned{message, natsMsg_Destroy};
  return copy_of(message);
}

std::vector<RawMessage> JetStream::messages(const std::string& stream) {
  jsStreamInfo* info = nullptr;
  require(js_GetStreamInfo(&info, context_, stream.c_str(), nullptr, nullptr), "reading a stream");
  const std::uint64_t first = std::max<std::uint64_t>(info->State.FirstSeq, 1);
  const std::uint64_t last = info->State.LastSeq;
  jsStreamInfo_Destroy(info);
  std::vector<RawMessage> all;
  for (std::uint64_t at = first; at <= last; ++at) {
    if (auto found = message(stream, at)) all.push_back(std::move(*found));
  }
  return all;
}

void JetStream::make_stream(const std::string& stream, const std::string& subjects,
                            const std::function<void(jsStreamConfig&)>& change) {
  const char* subject = subjects.c_str();
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = stream.c_str();
  config.Subjects = &subject;
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  config.Discard = js_DiscardNew;
  if (change) change(config);
  // A cluster on a loaded machine takes its time, and loses what it is asked while its servers
  // elect a leader.
  jsOptions patient;
  jsOptions_Init(&patient);
  patient.Wait = 10'000;
  jsErrCode code{};
  natsStatus status = NATS_TIMEOUT;
  for (int tries = 0; status == NATS_TIMEOUT && tries < 3; ++tries) {
    status = js_AddStream(nullptr, context_, &config, &patient, &code);
  }
  require(status, "making a stream", code);
}

void JetStream::update_stream(const std::string& stream,
                              const std::function<void(jsStreamConfig&)>& change) {
  jsStreamInfo* info = nullptr;
  require(js_GetStreamInfo(&info, context_, stream.c_str(), nullptr, nullptr), "reading a stream");
  const std::unique_ptr<jsStreamInfo, void (*)(jsStreamInfo*)> owned{info, jsStreamInfo_Destroy};
  change(*info->Config);
  jsErrCode code{};
  require(js_UpdateStream(nullptr, context_, info->Config, nullptr, &code), "changing a stream",
          code);
}

void JetStream::delete_consumer(const std::string& stream, const std::string& consumer) {
  require(js_DeleteConsumer(context_, stream.c_str(), consumer.c_str(), nullptr, nullptr),
          "deleting a consumer");
}

void JetStream::delete_stream(const std::string& stream) {
  require(js_DeleteStream(context_, stream.c_str(), nullptr, nullptr), "deleting a stream");
}

void JetStream::purge(const std::string& stream) {
  require(js_PurgeStream(context_, stream.c_str(), nullptr, nullptr), "purging a stream");
}

void JetStream::erase(const std::string& stream, std::uint64_t sequence) {
  require(js_DeleteMsg(context_, stream.c_str(), sequence, nullptr, nullptr), "deleting a message");
}

void JetStream::publish(const std::string& subject, const std::string& payload) {
  require(js_Publish(nullptr, context_, subject.c_str(), payload.data(),
                     static_cast<int>(payload.size()), nullptr, nullptr),
          "publishing");
}

}  // namespace stela::test

#include "raw_nats.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>

namespace stela::bench {

void check_nats(natsStatus status, const char* doing) {
  if (status == NATS_OK) return;
  throw std::runtime_error{std::string{doing} + ": " + natsStatus_GetText(status)};
}

// --- the connection

RawNats::RawNats(const std::string& url, RawNatsOptions options) : one_stream_{options.one_stream} {
  natsOptions* settings = nullptr;
  check_nats(natsOptions_Create(&settings), "options");
  natsOptions_SetURL(settings, url.c_str());
  natsOptions_SetSendAsap(settings, options.send_asap);
  check_nats(natsConnection_Connect(&connection_, settings), "connecting");
  natsOptions_Destroy(settings);
  jsOptions publishing;
  jsOptions_Init(&publishing);
  publishing.PublishAsync.MaxPending = options.window;
  publishing.PublishAsync.StallWait = 60'000;
  publishing.PublishAsync.AckHandler = on_ack;
  publishing.PublishAsync.AckHandlerClosure = this;
  check_nats(natsConnection_JetStream(&context_, connection_, &publishing), "JetStream");
}

RawNats::~RawNats() {
  jsCtx_Destroy(context_);
  natsConnection_Destroy(connection_);
}

void RawNats::make_stream() {
  js_DeleteStream(context_, NatsPlace::stream, nullptr, nullptr);
  const char* subjects[] = {NatsPlace::subjects};
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = NatsPlace::stream;
  config.Subjects = subjects;
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  config.Discard = js_DiscardNew;
  config.Duplicates = 120'000'000'000;
  check_nats(js_AddStream(nullptr, context_, &config, nullptr, nullptr), "making the stream");
}

std::uint64_t RawNats::messages_in_stream() {
  jsStreamInfo* info = nullptr;
  check_nats(js_GetStreamInfo(&info, context_, NatsPlace::stream, nullptr, nullptr), "looking");
  const std::uint64_t count = info->State.Msgs;
  jsStreamInfo_Destroy(info);
  return count;
}

void RawNats::publish(natsMsg* message) {
  const natsStatus status = js_PublishMsgAsync(context_, &message, nullptr);
  natsMsg_Destroy(message);
  check_nats(status, "publishing");
}

void RawNats::on_ack(jsCtx*, natsMsg* message, jsPubAck* ack, jsPubAckErr* error, void* self) {
  auto& raw = *static_cast<RawNats*>(self);
  // Ours are all that there is, and answers come in order.
  const bool is_next =
      !raw.one_stream_ || (ack != nullptr && ack->Sequence == raw.acknowledged() + 1);
  if (error != nullptr || !is_next) raw.failed_ = true;
  raw.acknowledged_.fetch_add(1, std::memory_order_release);
  raw.acknowledged_.notify_all();
  natsMsg_Destroy(message);
}

void RawNats::wait_for(std::uint64_t count) {
  for (std::uint64_t now = acknowledged(); now < count; now = acknowledged()) {
    acknowledged_.wait(now, std::memory_order_acquire);
  }
  if (failed_) throw std::runtime_error{"the server refused a message"};
}

// --- the envelope

namespace {

void append_number(std::string& out, std::int64_t number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void write_uuid(std::string& out, std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  out.clear();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    const auto byte = static_cast<unsigned char>(bytes[i]);
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
}

}  // namespace

RawEnvelope::RawEnvelope(std::string store_id, bool chained, std::string stream, std::string prefix)
    : store_id_{std::move(store_id)},
      source_{"urn:uuid:" + store_id_},
      stream_{std::move(stream)},
      prefix_{std::move(prefix)},
      chained_{chained} {}

void RawEnvelope::write_time(std::int64_t microseconds) {
  const std::int64_t second = microseconds / 1'000'000;
  if (second != time_second_) {
    const std::time_t time = second;
    std::tm parts{};
    gmtime_r(&time, &parts);
    char text[32];
    time_.assign(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.", &parts));
    time_second_ = second;
  }
  value_ = time_;
  std::string micros = std::to_string(microseconds % 1'000'000);
  value_.append(6 - micros.size(), '0');
  value_ += micros;
  value_ += 'Z';
}

natsMsg* RawEnvelope::make(const RawEvent& event) {
  subject_ = prefix_;
  subject_ += '.';
  subject_ += event.type;
  natsMsg* message = nullptr;
  check_nats(natsMsg_Create(&message, subject_.c_str(), nullptr, event.payload.data(),
                            static_cast<int>(event.payload.size())),
             "making a message");
  const auto set = [&](const char* name, const char* value) {
    check_nats(natsMsgHeader_Set(message, name, value), "setting a header");
  };
  const auto set_text = [&](const char* name, std::string_view text) {
    value_ = text;
    set(name, value_.c_str());
  };
  const auto set_number = [&](const char* name, std::int64_t number) {
    value_.clear();
    append_number(value_, number);
    set(name, value_.c_str());
  };
  write_uuid(id_, event.id);
  set("Nats-Msg-Id", id_.c_str());
  set("ce-specversion", "1.0");
  set("ce-id", id_.c_str());
  set_text("ce-type", event.type);
  set("ce-source", source_.c_str());
  write_time(event.recorded_at);
  set("ce-time", value_.c_str());
  set_text("ce-subject", event.stream);
  set("ce-datacontenttype", "application/json");
  char sortable[24];
  std::snprintf(sortable, sizeof sortable, "%020lld", static_cast<long long>(event.sequence));
  set("ce-sequence", sortable);
  set_text("ce-partitionkey", event.stream);
  set_number("ce-streamversion", event.version);
  set("ce-schemaversion", "1");
  set_text("ce-correlationid", event.correlation);
  set("ce-actor", "web");
  set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  set("Stela-Header-tenant", "north");
  set("Stela-Store", store_id_.c_str());
  set_number("Stela-Sequence", event.sequence);
  if (chained_) set_number("Stela-Previous", previous_);
  set_number("Stela-Stream-Previous", event.published_before);
  set("Nats-Expected-Stream", stream_.c_str());
  if (!chained_) return message;
  set_number("Nats-Expected-Last-Sequence", static_cast<std::int64_t>(position_));
  if (position_ > 0) set("Nats-Expected-Last-Msg-Id", previous_id_.c_str());
  ++position_;
  previous_ = event.sequence;
  previous_id_ = id_;
  return message;
}

double cpu_seconds_of(pid_t process) {
  std::ifstream file{"/proc/" + std::to_string(process) + "/stat"};
  std::string text;
  std::getline(file, text);
  // The name may hold anything; behind it follow the state and ten numbers, then what we want.
  text.erase(0, text.rfind(')') + 2);
  std::size_t at = 0;
  for (int field = 0; field < 11; ++field) at = text.find(' ', at) + 1;
  char* end = nullptr;
  const auto user = std::strtoull(text.c_str() + at, &end, 10);
  const auto system = std::strtoull(end, nullptr, 10);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace stela::bench

#include "replies.hpp"

#include "envelope.hpp"

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/json_reader.hpp>

#include <cstdlib>
#include <string>

namespace stela::nats {
namespace {

std::string header_of(natsMsg* message, const char* name) {
  const char* value = nullptr;
  if (natsMsgHeader_Get(message, name, &value) != NATS_OK || value == nullptr) return {};
  return value;
}

std::int64_t number_in(const std::string& text) noexcept {
  return std::strtoll(text.c_str(), nullptr, 10);
}

/// {"stream":"S","seq":7,"duplicate":true} or {"error":{"code":400,"err_code":10071,…},…}
Answer parse(std::string_view text) {
  Answer answer;
  json::Reader reader{text};
  reader.open_object();
  if (reader.select("error")) {
    reader.open_object();
    const int code = reader.select("err_code") ? static_cast<int>(reader.get_int64()) : 0;
    answer.kind = kind_of(code);
    if (reader.select("description")) answer.detail = reader.get_string();
    answer.detail += " (JetStream error " + std::to_string(code) + ')';
    return answer;
  }
  answer.kind = Answer::Kind::stored;
  if (reader.select("seq")) answer.broker_sequence = reader.get_uint64();
  if (reader.select("duplicate") && reader.get_bool()) answer.kind = Answer::Kind::stored_before;
  // A staged message of a server that was just started: it isn't known whether it will stay.
  if (answer.broker_sequence == 0) answer.kind = Answer::Kind::unknown;
  return answer;
}

}  // namespace

Answer::Kind kind_of(int jetstream_error) noexcept {
  switch (jetstream_error) {
    case 10071:  // wrong last sequence
    case 10070:  // wrong last message id
    case 10164:
    case 10158:
      return Answer::Kind::stored_before;
    case 10054:  // message size exceeds maximum allowed
    case 10097:  // header size exceeds maximum allowed of 64k
      return Answer::Kind::refused;
    case 10077:  // store failed: maximum messages or bytes exceeded
    case 10023:  // insufficient resources
    case 10002:  // resource limits exceeded for account
    case 10047:  // insufficient storage resources
    case 10008:  // system temporarily unavailable
    case 10122:  // stream is offline
      return Answer::Kind::full;
    case 10060:  // expected stream does not match
    case 10059:  // stream not found
    case 10039:  // JetStream not enabled for account
    case 10076:  // JetStream not enabled
    case 10109:  // sealed
      return Answer::Kind::misconfigured;
    default:
      return Answer::Kind::rejected;
  }
}

Answer read_reply(natsMsg* reply) {
  if (natsMsg_IsNoResponders(reply)) {
    return {.kind = Answer::Kind::misconfigured,
            .detail = "no JetStream stream takes this subject"};
  }
  const std::string_view text{natsMsg_GetData(reply),
                              static_cast<std::size_t>(natsMsg_GetDataLength(reply))};
  try {
    return parse(text);
  } catch (const codec::DecodeError& e) {
    return {.kind = Answer::Kind::unknown,
            .detail = std::string{"the server's answer can't be read: "} + e.what()};
  }
}

FoundMessage describe(natsMsg* message, std::uint64_t broker_sequence) {
  FoundMessage found{.broker_sequence = broker_sequence};
  found.message_id = header_of(message, header::message_id);
  found.store_id = header_of(message, header::store);
  found.sequence = GlobalSequence{number_in(header_of(message, header::sequence))};
  found.redelivery = number_in(header_of(message, header::redelivery));
  found.is_ours = !found.store_id.empty() && found.sequence.value() > 0;
  return found;
}

}  // namespace stela::nats

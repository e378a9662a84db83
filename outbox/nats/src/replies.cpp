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

int read_int(json::Reader& reader, std::string_view name) {
  return reader.select(name) ? static_cast<int>(reader.get_int64()) : 0;
}

/// The current value of the reader: {"code":400,"err_code":10071,"description":"…"}
ApiError read_error(json::Reader& reader) {
  ApiError error;
  reader.open_object();
  error.status = read_int(reader, "code");
  error.code = read_int(reader, "err_code");
  if (reader.select("description")) error.description = reader.get_string();
  reader.close();
  return error;
}

std::string in_words(const ApiError& error) {
  const std::string number = std::to_string(error.code != 0 ? error.code : error.status);
  return error.description + " (JetStream error " + number + ')';
}

/// {"stream":"S","seq":7,"duplicate":true} or {"error":{…},…}
Answer parse(std::string_view text) {
  Answer answer;
  json::Reader reader{text};
  reader.open_object();
  if (reader.select("error")) {
    const ApiError error = read_error(reader);
    answer.kind = kind_of(error);
    answer.detail = in_words(error);
    return answer;
  }
  answer.kind = Answer::Kind::stored;
  if (reader.select("seq")) answer.broker_sequence = reader.get_uint64();
  if (reader.select("duplicate") && reader.get_bool()) answer.kind = Answer::Kind::stored_before;
  // A staged message of a server that was just started: it isn't known whether it will stay.
  if (answer.broker_sequence == 0) answer.kind = Answer::Kind::unknown;
  return answer;
}

/// What a stream's files can't hold, whatever its limits: 2.9 has it with a typing error.
bool is_too_large(const ApiError& error) noexcept {
  return error.description == "message too large" || error.description == "message to large";
}

}  // namespace

Answer::Kind kind_of(const ApiError& error) noexcept {
  switch (error.code) {
    case 10070:  // wrong last message id
    case 10071:  // wrong last sequence
    case 10158:  // duplicate message id is in process
    case 10164:  // wrong last sequence, in a cluster
      return Answer::Kind::stored_before;
    case 10054:  // message size exceeds maximum allowed
    case 10097:  // header size exceeds maximum allowed of 64k
      return Answer::Kind::refused;
    case 10077:  // store failed: {why}
      return is_too_large(error) ? Answer::Kind::refused : Answer::Kind::full;
    case 10027:  // maximum number of streams reached
    case 10039:  // JetStream not enabled for account
    case 10052:  // stream configuration is invalid
    case 10053:  // stream configuration exceeds limits
    case 10059:  // stream not found
    case 10060:  // expected stream does not match
    case 10065:  // subjects overlap with an existing stream
    case 10074:  // replicas > 1 not supported in non-clustered mode
    case 10076:  // JetStream not enabled
    case 10109:  // invalid operation on sealed stream
    case 10113:  // account requires a stream config to have max bytes set
    case 10120:  // no JetStream default or applicable tiered limit present
    case 10122:  // stream max bytes exceeds account limit max stream bytes
    case 10128:  // stream name can not contain path separators
    case 10133:  // replicas count cannot be negative
    case 10169:  // message counter increment is missing: the stream counts
    case 10172:  // message counter is broken
    case 10185:  // JetStream minimum api level required
      return Answer::Kind::misconfigured;
    // What a header of the message asks for: roll-up, a time to live, a counter, a schedule.
    case 10111:
    case 10165:
    case 10166:
    case 10168:
    case 10170:
    case 10171:
    case 10188:
    case 10189:
    case 10190:
    case 10191:
    case 10192:
    case 10193:
    case 10203:
    case 10212:
    case 10223:
    case 10227:
      return Answer::Kind::rejected;
    default:
      return Answer::Kind::full;
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

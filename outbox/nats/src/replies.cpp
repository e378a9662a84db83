#include "replies.hpp"

#include "delivery.hpp"

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/base64.hpp>
#include <stela/framework/codec/rfc3339.hpp>

#include <chrono>

namespace stela::nats {
namespace {

int read_int(json::Reader& reader, std::string_view name) {
  return reader.select(name) ? static_cast<int>(reader.get_int64()) : 0;
}

/// Parses "NATS/1.0 status\r
///
/// Name: value\r
///
/// …". Usually there is no status.
KeptHeaders::Map parse_headers(std::string_view text) {
  KeptHeaders::Map headers;
  const std::string_view first = text.substr(0, text.find_first_of("\r\n"));
  if (const std::size_t blank = first.find(' '); blank != std::string_view::npos) {
    const std::size_t begin = std::min(first.find_first_not_of(' ', blank), first.size());
    if (begin < first.size()) headers.emplace(header::status, first.substr(begin));
  }
  for (std::size_t begin = text.find('\n'); begin != std::string_view::npos;) {
    const std::size_t end = text.find('\n', begin + 1);
    std::string_view line = text.substr(begin + 1, end - begin - 1);
    begin = end;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string name{line.substr(0, colon)};
    line.remove_prefix(std::min(line.find_first_not_of(' ', colon + 1), line.size()));
    headers.emplace(name, line.substr(0, line.find_last_not_of(" \r") + 1));
  }
  return headers;
}

/// Parses {"stream":"S","seq":7,"duplicate":true} or {"error":{…},…}.
Answer parse(std::string_view text) {
  Answer answer;
  json::Reader reader{text};
  reader.open_object();
  if (const auto error = error_in(reader)) {
    const Meaning meaning = meaning_of(*error);
    answer.kind = meaning.kind;
    answer.failure = meaning.failure;
    answer.detail = in_words(*error);
    return answer;
  }
  answer.kind = Answer::Kind::stored;
  if (reader.select("seq")) answer.broker_sequence = reader.get_uint64();
  if (reader.select("duplicate") && reader.get_bool()) {
    answer.kind = Answer::Kind::stored_before;
    answer.detail = "the broker took it for a duplicate of a message that it has already";
  }
  // A recently started server has only staged the message, and may not keep it.
  if (answer.broker_sequence == 0) answer.kind = Answer::Kind::unknown;
  return answer;
}

/// Opens the message in a reply to STREAM.MSG.GET, unless the reply is an error.
std::optional<ApiError> open_message(json::Reader& reader) {
  reader.open_object();
  if (auto error = error_in(reader)) return error;
  if (!reader.select("message")) reader.fail("has no message");
  reader.open_object();
  return std::nullopt;
}

std::uint64_t sequence_in(json::Reader& message) {
  if (!message.select("seq")) message.fail("has no sequence");
  return message.get_uint64();
}

/// Empty if the member is missing.
std::string decoded_in(json::Reader& message, std::string_view name) {
  std::string bytes;
  if (message.select(name) && !base64::decode(message.get_string(), bytes)) {
    message.fail("isn't base64");
  }
  return bytes;
}

/// The message is too large for a stream's files, whatever the limits. Server 2.9 misspells it.
bool is_too_large(const ApiError& error) noexcept {
  return error.description == "message too large" || error.description == "message to large";
}

Meaning meaning_of_store(const ApiError& error) noexcept {
  if (is_too_large(error)) return {Answer::Kind::refused, FailureClass::too_large};
  const bool is_limit = error.description.starts_with("maximum ");
  return {Answer::Kind::full, is_limit ? FailureClass::stream_full : FailureClass::other};
}

}  // namespace

std::string kept_words(std::string_view words) {
  constexpr std::size_t most_bytes = 500;
  if (words.size() <= most_bytes) return std::string{words};
  std::size_t end = most_bytes - 3;
  // Don't cut a character.
  while (end > 0 && (static_cast<unsigned char>(words[end]) & 0xc0U) == 0x80U) --end;
  return std::string{words.substr(0, end)} + "...";
}

std::string in_words(const ApiError& error) {
  const std::string number = std::to_string(error.code != 0 ? error.code : error.status);
  return error.description + " (JetStream error " + number + ')';
}

Meaning meaning_of(const ApiError& error) noexcept {
  using enum FailureClass;
  switch (error.code) {
    case 10070:  // wrong last message id
    case 10071:  // wrong last sequence
    case 10158:  // duplicate message id is in process
    case 10164:  // wrong last sequence, in a cluster
      return {Answer::Kind::stored_before, other};
    case 10054:  // message size exceeds maximum allowed
      return {Answer::Kind::refused, too_large};
    case 10097:  // header size exceeds maximum allowed of 64k, which no setting changes
      return {Answer::Kind::refused, other};
    case 10077:  // store failed: {why}
      return meaning_of_store(error);
    case 10059:  // stream not found
      return {Answer::Kind::misconfigured, stream_missing};
    case 10109:  // invalid operation on sealed stream
      return {Answer::Kind::misconfigured, stream_sealed};
    case 10060:  // expected stream does not match
    case 10065:  // subjects overlap with an existing stream
      return {Answer::Kind::misconfigured, subject};
    case 10027:  // maximum number of streams reached
    case 10039:  // JetStream not enabled for account
    case 10052:  // stream configuration is invalid
    case 10053:  // stream configuration exceeds limits
    case 10074:  // replicas > 1 not supported in non-clustered mode
    case 10076:  // JetStream not enabled
    case 10113:  // account requires a stream config to have max bytes set
    case 10120:  // no JetStream default or applicable tiered limit present
    case 10122:  // stream max bytes exceeds account limit max stream bytes
    case 10128:  // stream name can not contain path separators
    case 10133:  // replicas count cannot be negative
    case 10169:  // message counter increment is missing: the stream counts
    case 10172:  // message counter is broken
    case 10185:  // JetStream minimum api level required
      return {Answer::Kind::misconfigured, stream_settings};
    // A header of the message requests a feature: roll-up, a time to live, a counter, a schedule.
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
      return {Answer::Kind::rejected, rejected};
    default:
      return {Answer::Kind::full, other};
  }
}

std::optional<ApiError> error_in(json::Reader& reply) {
  if (!reply.select("error")) return std::nullopt;
  ApiError error;
  reply.open_object();
  error.status = read_int(reply, "code");
  error.code = read_int(reply, "err_code");
  if (reply.select("description")) error.description = kept_words(reply.get_string());
  reply.close();
  return error;
}

Answer read_reply(natsMsg* reply) {
  if (natsMsg_IsNoResponders(reply)) {
    return {.kind = Answer::Kind::misconfigured,
            .detail = "no JetStream stream takes this subject",
            .failure = FailureClass::subject};
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

std::variant<FoundMessage, ApiError> read_message(std::string_view reply) {
  json::Reader reader{reply};
  if (auto error = open_message(reader)) return *std::move(error);
  const std::uint64_t sequence = sequence_in(reader);
  const KeptHeaders::Map headers = parse_headers(decoded_in(reader, "hdrs"));
  return describe(KeptHeaders{headers}, sequence);
}

std::variant<StoredMessage, ApiError> read_whole_message(std::string_view reply) {
  json::Reader reader{reply};
  if (auto error = open_message(reader)) return *std::move(error);
  StoredMessage message{.sequence = sequence_in(reader)};
  if (reader.select("subject")) message.subject = reader.get_string();
  message.headers = parse_headers(decoded_in(reader, "hdrs"));
  message.payload = decoded_in(reader, "data");
  if (!reader.select("time")) reader.fail("has no time");
  const auto time = codec::parse_time<std::chrono::nanoseconds>(reader.get_string());
  if (!time) reader.fail("isn't a time");
  message.time = time->time_since_epoch().count();
  return message;
}

bool is_missing_message(const ApiError& error) noexcept {
  constexpr int no_message = 10'037;
  constexpr int no_sequence = 10'043;
  return error.code == no_message || error.code == no_sequence;
}

FoundMessage describe(const Headers& headers, std::uint64_t broker_sequence) {
  FoundMessage found{.broker_sequence = broker_sequence};
  found.message_id = headers.get(header::message_id);
  found.store_id = headers.get(header::store);
  found.sequence = GlobalSequence{number_in<std::int64_t>(headers.get(header::sequence))};
  found.redelivery = number_in<std::int64_t>(headers.get(header::redelivery));
  found.type = headers.get("ce-type");
  found.is_ours =
      !found.store_id.empty() && found.sequence.value() > 0 && headers.get(header::status).empty();
  return found;
}

}  // namespace stela::nats

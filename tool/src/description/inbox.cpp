#include "description/inbox.hpp"

namespace stela::tool {
namespace {

using description::Reader;
using nats::Gap;
using nats::ParkedMessage;

/// What the reader does, or why it does nothing.
std::string_view state_of(const Reader& one) {
  const nats::ReaderStatus& reader = one.reader;
  if (reader.is_paused) return "paused";
  if (reader.is_overdue) return "reader is gone or hangs";
  if (reader.failing > 0) return reader.attempts > 0 ? "failing" : "waiting for a newer process";
  if (reader.is_waiting) return "waiting for other streams";
  if (!reader.error.empty()) return "stopped";
  return reader.owner.empty() ? "no reader" : "reading";
}

constexpr Field<Reader> reader_fields[] = {
    field<[](const Reader& one) { return one.reader.consumer; }>("consumer"),
    field<[](const Reader& one) { return one.reader.broker_stream; }>("broker_stream",
                                                                      {.title = "stream"}),
    field<[](const Reader& one) { return one.reader.filter; }>("filter"),
    field<[](const Reader& one) { return one.reader.position; }>("position"),
    field<[](const Reader& one) { return state_of(one); }>("state", {.kind = Kind::word}),
    field<[](const Reader& one) { return one.reader.owner; }>("owner"),
    field<[](const Reader& one) { return unless_empty(one.reader.failing); }>("failing"),
    field<[](const Reader& one) { return one.reader.attempts; }>("attempts"),
    field<[](const Reader& one) { return one.reader.error; }>(
        "error", {.kind = Kind::untrusted, .most = 60}),
    field<&Reader::parked_messages>("parked"),
    field<&Reader::parked_streams>("parked_streams"),
    field<&Reader::parked_bytes>("parked_bytes"),
    field<&Reader::parked_since>("parked_since_at", {.title = "parked since"}),
    field<&Reader::gaps>("gaps"),
};

/// Why the message is parked.
std::string_view state_of(const ParkedMessage& parked) {
  if (parked.is_to_retry) return "to be retried";
  return parked.error.empty() ? "behind another" : "parked";
}

constexpr Field<ParkedMessage> parked_fields[] = {
    field<&ParkedMessage::number>("parked"),
    field<&ParkedMessage::consumer>("consumer"),
    field<&ParkedMessage::broker_stream>("broker_stream"),
    field<&ParkedMessage::broker_sequence>("broker_sequence"),
    field<&ParkedMessage::stream>("stream", {.kind = Kind::untrusted, .most = 40}),
    field<&ParkedMessage::event_id>("event_id",
                                    {.title = "event", .kind = Kind::untrusted, .most = 40}),
    field<description::type_of>("type", {.kind = Kind::untrusted}),
    field<&ParkedMessage::subject>("subject", {.kind = Kind::untrusted}),
    field<&ParkedMessage::parked_at>("parked_at"),
    field<&ParkedMessage::attempts>("attempts"),
    field<&ParkedMessage::error>("error", {.kind = Kind::untrusted, .most = 60}),
    field<&ParkedMessage::is_to_retry>("is_to_retry"),
    field<[](const ParkedMessage& one) { return state_of(one); }>("state", {.kind = Kind::word}),
};

constexpr Field<Gap> gap_fields[] = {
    field<&Gap::number>("gap"),
    field<&Gap::consumer>("consumer"),
    field<&Gap::source>("source"),
    field<&Gap::stream>("stream", {.kind = Kind::untrusted}),
    field<&Gap::after>("after", {.title = "after version"}),
    field<&Gap::missing>("missing", {.title = "missing up to"}),
    field<&Gap::seen_at>("seen_at"),
};

}  // namespace

namespace description {

std::string type_of(const ParkedMessage& message) {
  const auto found = message.headers.find("ce-type");
  return found == message.headers.end() ? std::string{} : found->second;
}

constexpr Description<Reader> reader{
    reader_fields,
    {.table = "consumer broker_stream position state owner parked parked_since_at gaps error"}};
constexpr Description<ParkedMessage> parked_message{
    parked_fields,
    {.table = "parked consumer stream event_id subject parked_at attempts state error"}};
constexpr Description<Gap> gap{gap_fields, {.table = "gap consumer stream after missing seen_at"}};

}  // namespace description
}  // namespace stela::tool

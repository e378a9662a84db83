#include "description/inbox.hpp"

namespace stela::tool {
namespace {

using nats::ConsumerStatus;
using nats::DeadLetter;
using nats::Gap;
using nats::HeldStream;

constexpr Field<ConsumerStatus> consumer_fields[] = {
    field<&ConsumerStatus::consumer>("consumer"),
    field<&ConsumerStatus::held_streams>("held_streams"),
    field<&ConsumerStatus::held_messages>("held_messages"),
    field<[](const ConsumerStatus& one) {
      return one.held_since ? to_string(*one.held_since) : std::string{};
    }>("held_since"),
    field<&ConsumerStatus::dead_letters>("dead_letters"),
    field<&ConsumerStatus::gaps>("gaps"),
    field<&ConsumerStatus::held_since>("since", {.title = "held since", .is_text_only = true}),
};

constexpr Field<DeadLetter> letter_fields[] = {
    field<&DeadLetter::number>("letter"),
    field<&DeadLetter::consumer>("consumer"),
    field<&DeadLetter::broker_stream>("broker_stream"),
    field<&DeadLetter::broker_sequence>("broker_sequence"),
    field<&DeadLetter::stream>("stream", {.kind = Kind::untrusted, .most = 40}),
    field<&DeadLetter::event_id>("event_id",
                                 {.title = "event", .kind = Kind::untrusted, .most = 40}),
    field<&DeadLetter::subject>("subject", {.kind = Kind::untrusted}),
    field<&DeadLetter::dead_at>("dead_at"),
    field<&DeadLetter::attempts>("attempts"),
    field<&DeadLetter::error>("error", {.kind = Kind::untrusted, .most = 60}),
    field<&DeadLetter::is_to_retry>("is_to_retry"),
    field<[](const DeadLetter& letter) { return letter.is_to_retry ? "to be retried" : "dead"; }>(
        "state", {.is_text_only = true}),
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

/// What a held stream waits for.
std::string_view reason_of(const HeldStream& held) {
  if (held.is_released) return "released";
  if (held.attempts > 0) return "failing";
  return held.error.empty() ? "waiting for an earlier message" : "waiting for a newer process";
}

constexpr Field<HeldStream> held_fields[] = {
    field<&HeldStream::number>("held"),
    field<&HeldStream::consumer>("consumer"),
    field<&HeldStream::source>("source"),
    field<&HeldStream::stream>("stream", {.kind = Kind::untrusted}),
    field<&HeldStream::version>("version"),
    field<&HeldStream::broker_stream>("broker_stream"),
    field<&HeldStream::broker_sequence>("broker_sequence"),
    field<&HeldStream::held_at>("held_at", {.title = "since"}),
    field<&HeldStream::due_at>("due_at", {.title = "next"}),
    field<reason_of>("state"),
    field<&HeldStream::attempts>("attempts"),
    field<&HeldStream::behind>("waiting"),
    field<&HeldStream::error>("error", {.kind = Kind::untrusted}),
};

}  // namespace

namespace description {

constexpr Description<ConsumerStatus> consumer{
    consumer_fields, {.table = "consumer held_streams held_messages since dead_letters gaps"}};
constexpr Description<DeadLetter> dead_letter{
    letter_fields,
    {.table = "letter consumer stream event_id subject dead_at attempts state error"}};
constexpr Description<Gap> gap{gap_fields, {.table = "gap consumer stream after missing seen_at"}};
constexpr Description<HeldStream> held_stream{
    held_fields,
    {.table = "held consumer stream version held_at state attempts due_at waiting error"}};

}  // namespace description
}  // namespace stela::tool

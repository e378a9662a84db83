// What the server says, as answers of the outbox's port.
#pragma once

#include "handles.hpp"

#include <stela/outbox/publisher.hpp>

#include <string_view>

namespace stela::nats {

/// The meaning of an error of JetStream, by its number: docs/reference/wire-format.md has the
/// table.
Answer::Kind kind_of(int jetstream_error) noexcept;

/// The answer in a reply to a publish.
Answer read_reply(natsMsg* reply);

/// A message as it stands in a stream.
FoundMessage describe(natsMsg* message, std::uint64_t broker_sequence);

}  // namespace stela::nats

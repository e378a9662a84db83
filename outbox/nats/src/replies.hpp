// What the server says, as answers of the outbox's port.
#pragma once

#include "handles.hpp"

#include <stela/outbox/publisher.hpp>

#include <string>

namespace stela::nats {

/// An error of JetStream, as a reply has it.
struct ApiError {
  /// As in HTTP; 0 if it isn't known.
  int status = 0;
  /// JetStream's own number; 0 if there is none.
  int code = 0;
  std::string description = {};
};

/// The meaning of an error to the relay: docs/reference/wire-format.md has the table. An error that
/// isn't known to be a message's own fault is the broker's.
Answer::Kind kind_of(const ApiError& error) noexcept;

/// The answer in a reply to a publish.
Answer read_reply(natsMsg* reply);

/// A message as it stands in a stream.
FoundMessage describe(natsMsg* message, std::uint64_t broker_sequence);

}  // namespace stela::nats

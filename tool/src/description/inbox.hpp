// Descriptions of the inbox: readers, parked messages, gaps.
#pragma once

#include "description/description.hpp"

#include <stela/nats/inbox.hpp>

namespace stela::tool::description {

/// A consumer's reading of one JetStream stream, with the counts of the whole consumer.
struct Reader {
  nats::ReaderStatus reader = {};
  std::int64_t parked_messages = 0;
  std::int64_t parked_streams = 0;
  std::int64_t parked_bytes = 0;
  std::optional<Timestamp> parked_since = {};
  std::int64_t gaps = 0;
};

/// From its headers. Empty if they don't name it.
std::string type_of(const nats::ParkedMessage& message);

extern const Description<Reader> reader;
extern const Description<nats::ParkedMessage> parked_message;
extern const Description<nats::Gap> gap;

}  // namespace stela::tool::description

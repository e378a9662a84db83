// Descriptions of the inbox: consumers, held streams, dead letters, gaps.
#pragma once

#include "description/description.hpp"

#include <stela/nats/inbox.hpp>

namespace stela::tool::description {

extern const Description<nats::ConsumerStatus> consumer;
extern const Description<nats::DeadLetter> dead_letter;
extern const Description<nats::Gap> gap;
extern const Description<nats::HeldStream> held_stream;

}  // namespace stela::tool::description

// Records the outcomes of messages: the one transaction behind every step of the relay.
#pragma once

#include "database/connection.hpp"
#include "relay/outbox_port.hpp"

#include <stela/framework/clock.hpp>

namespace stela::outbox {

/// False if the lease is lost; then the transaction must be rolled back.
bool apply(database::Connection& connection, const relay::Lease& lease,
           const relay::Advance& advance, Timestamp now);

}  // namespace stela::outbox

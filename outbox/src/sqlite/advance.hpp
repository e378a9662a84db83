// Notes what became of messages: the one transaction behind every step of the relay.
#pragma once

#include "relay/store.hpp"
#include "sqlite/connection.hpp"

#include <stela/framework/clock.hpp>

#include <string_view>

namespace stela::outbox {

/// False if the lease has passed; then the transaction must be rolled back.
bool apply(sqlite::Connection& connection, const relay::Lease& lease, const relay::Advance& advance,
           Timestamp now);

/// The same for one who holds no partition, but has claimed messages: what isn't under `claim` any
/// more is left alone.
void apply_claimed(sqlite::Connection& connection, PartitionId partition, std::string_view claim,
                   const relay::Advance& advance, Timestamp now);

}  // namespace stela::outbox

// Pages of messages, for operators.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/outbox/messages.hpp>

namespace stela::outbox {

/// NotFound if there is no such stream.
MessagePage list_messages(Store& store, const Partitioner& partitioner, const MessageQuery& query);

}  // namespace stela::outbox

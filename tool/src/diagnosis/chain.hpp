// Why something is as it is: a chain of findings, each explained by the next.
#pragma once

#include "diagnosis/diagnose.hpp"

#include <stela/outbox/operations.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

using Chain = std::vector<Finding>;

/// From the worst finding on; `well` if there is none.
Chain chain_of_worst(const std::vector<Finding>& findings);

/// Of a partition, worker, projector, process or consumer of this name; empty if there is none.
Chain chain_of_name(const Facts& facts, const std::vector<Finding>& findings,
                    std::string_view name);

/// The state of one message.
Finding describe(const OutboxMessage& message, const Facts& facts);

/// Of the message of an event, and what it waits for.
Chain chain_of_message(OutboxOperations& outbox, const OutboxMessage& message, const Facts& facts,
                       const std::vector<Finding>& findings);

/// Of an event that has no message.
Chain chain_without_message(const StoredEvent& event, const Facts& facts,
                            const std::vector<Finding>& findings);

}  // namespace stela::tool

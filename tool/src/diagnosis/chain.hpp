// Explains a state: a chain of findings, each explained by the next.
#pragma once

#include "diagnosis/diagnose.hpp"

#include <stela/outbox/operations.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

using Chain = std::vector<Finding>;

/// Begins at the worst finding. `well` if there is none.
Chain chain_of_worst(const std::vector<Finding>& findings);

/// For the partition, worker, projector, process or consumer of this name. Empty if there is none.
Chain chain_of_name(const Facts& facts, const std::vector<Finding>& findings,
                    std::string_view name);

/// The state of one message.
Finding describe(const OutboxMessage& message, const Facts& facts);

/// For the message of an event, and what the message waits for.
Chain chain_of_message(OutboxOperations& outbox, const OutboxMessage& message, const Facts& facts,
                       const std::vector<Finding>& findings);

/// For an event without a message.
Chain chain_without_message(const StoredEvent& event, const Facts& facts,
                            const std::vector<Finding>& findings);

}  // namespace stela::tool

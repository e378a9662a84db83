// Cursors over the log: their position, and their end.
#pragma once

#include "ledger/pages.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

#include <memory>
#include <span>

namespace stela::ledger {

STELA_EVENTSTORE_EXPORT EventRange read_stream(std::unique_ptr<Pages> pages, const StreamId& stream,
                                               const StreamQuery& query);
STELA_EVENTSTORE_EXPORT EventRange read_all(std::unique_ptr<Pages> pages, const AllQuery& query);
EventRange read_query(std::unique_ptr<Pages> pages, const Query& query, const QueryRange& range);
EventRange read_at(std::unique_ptr<Pages> pages, std::span<const GlobalSequence> sequences);

}  // namespace stela::ledger

#include <stela/framework/decision.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>

namespace stela::detail {
namespace {

/// The newest event that the view wants, if any: of the store only, up to the position.
void take_last(EventLog& log, ViewReader& reader, GlobalSequence position) {
  const QueryRange last{.up_to = position, .direction = Direction::backward, .limit = 1};
  for (const StoredEvent& event : log.read({.items = {reader.item()}}, last)) reader.take(event);
}

/// One scan for all of them.
void take_all(EventLog& log, std::span<ViewReader* const> readers, GlobalSequence position) {
  Query query;
  for (const ViewReader* const reader : readers) query.items.push_back(reader->item());
  if (query.items.empty()) return;
  for (const StoredEvent& event : log.read(query, {.up_to = position})) {
    for (ViewReader* const reader : readers) {
      if (reader->wants(event)) reader->take(event);
    }
  }
}

bool has_pending_for(UnitOfWork& unit, const ViewReader& reader) {
  bool has = false;
  UnitAccess::for_each_pending(unit,
                               [&](const StoredEvent& event) { has = has || reader.wants(event); });
  return has;
}

void take_pending(UnitOfWork& unit, ViewReader& reader) {
  std::size_t left = 0;
  if (reader.last_only()) {
    UnitAccess::for_each_pending(
        unit, [&](const StoredEvent& event) { left += reader.wants(event) ? 1 : 0; });
  }
  UnitAccess::for_each_pending(unit, [&](const StoredEvent& event) {
    if (!reader.wants(event)) return;
    if (reader.last_only() && left-- > 1) return;
    reader.take(event);
  });
}

}  // namespace

void read_views(UnitOfWork& unit, std::span<ViewReader* const> readers) {
  std::vector<TagNeed> needs;
  for (const ViewReader* const reader : readers) {
    needs.insert(needs.end(), reader->needs().begin(), reader->needs().end());
  }
  const GlobalSequence position = UnitAccess::position(unit, needs).head;
  // Before anything is read: a caller that catches an error of the read has seen a part of it.
  for (const ViewReader* const reader : readers) UnitAccess::depend_on(unit, reader->item());

  EventLog& log = UnitAccess::log(unit);
  const bool has_pending = UnitAccess::count_pending(unit) > 0;
  std::vector<ViewReader*> scanned;
  for (ViewReader* const reader : readers) {
    if (!reader->last_only()) {
      scanned.push_back(reader);
    } else if (!has_pending || !has_pending_for(unit, *reader)) {
      take_last(log, *reader, position);
    }
  }
  take_all(log, scanned, position);
  if (!has_pending) return;
  for (ViewReader* const reader : readers) take_pending(unit, *reader);
}

void decide_within(UnitOfWork& unit, FunctionRef<void()> decide) {
  in_context(UnitAccess::context(unit), [&] {
    const std::size_t before = UnitAccess::count_pending(unit);
    try {
      decide();
    } catch (...) {
      if (UnitAccess::count_pending(unit) != before) UnitAccess::give_up(unit);
      throw;
    }
  });
}

namespace {

AppendResult decide_once(EventLog& log, const DecideOptions& options,
                         FunctionRef<void(UnitOfWork&)> run) {
  if (!options.append_id.empty()) {
    if (auto found = log.find_append(options.append_id)) return *std::move(found);
  }
  UnitOfWork unit{log};
  run(unit);
  // A decision that records nothing was right at its position, whatever happened since.
  if (UnitAccess::count_pending(unit) == 0 && options.append_id.empty()) return {};
  return unit.commit({.append_id = options.append_id});
}

AppendResult decide_under_lock(EventLog& log, const DecideOptions& options,
                               FunctionRef<void(UnitOfWork&)> run) {
  AppendResult result;
  log.transact([&](Transaction& transaction) { result = decide_once(transaction, options, run); });
  return result;
}

AppendResult decide_until_it_holds(EventLog& log, const DecideOptions& options,
                                   FunctionRef<void(UnitOfWork&)> run) {
  if (dynamic_cast<Transaction*>(&log) != nullptr) return decide_once(log, options, run);
  Retries retries{options.retry};
  for (;;) {
    try {
      return retries.is_at_last() ? decide_under_lock(log, options, run)
                                  : decide_once(log, options, run);
    } catch (const Error& e) {
      if (!retries.is_worthwhile(e)) throw;
    }
    retries.pause();
  }
}

}  // namespace

AppendResult decide(EventLog& log, const DecideOptions& options,
                    FunctionRef<void(UnitOfWork&)> run) {
  return in_context(options.context,
                    [&] { return decide_until_it_holds(log.anchor(), options, run); });
}

}  // namespace stela::detail

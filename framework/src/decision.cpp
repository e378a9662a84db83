#include <stela/framework/decision.hpp>
#include <stela/framework/query.hpp>

#include <algorithm>
#include <vector>

namespace stela::detail {
namespace {

/// A view that hasn't read everything yet.
struct Unread {
  ViewReader* reader;
  /// The sequence up to which it has read.
  GlobalSequence after = {};
};

/// Takes the newest event that the view wants, if any, from the store up to the position.
void take_last(EventLog& log, ViewReader& reader, GlobalSequence position) {
  const QueryRange last{.up_to = position, .direction = Direction::backward, .limit = 1};
  for (const StoredEvent& event : log.read({.items = {reader.item()}}, last)) reader.take(event);
}

/// Reads all of them in one scan.
void take_all(EventLog& log, std::span<const Unread> unread, GlobalSequence position) {
  if (unread.empty()) return;
  Query query;
  GlobalSequence after = position;
  for (const Unread& one : unread) {
    query.items.push_back(one.reader->item());
    after = std::min(after, one.after);
  }
  for (const StoredEvent& event : log.read(query, {.after = after, .up_to = position})) {
    for (const Unread& one : unread) {
      if (event.sequence > one.after && one.reader->wants(event)) one.reader->take(event);
    }
  }
}

/// Gives the views the events in the answer. Returns the views whose events aren't complete.
std::vector<Unread> take_answered(DecisionAnswer& answer, std::span<ViewReader* const> readers) {
  std::vector<Unread> unread;
  if (answer.parts.empty()) {
    for (ViewReader* const reader : readers) unread.push_back({reader});
    return unread;
  }
  auto event = answer.events->begin();
  for (std::size_t i = 0; i < readers.size(); ++i) {
    GlobalSequence after;
    for (std::size_t left = answer.parts[i].events; left > 0; --left, ++event) {
      readers[i]->take(*event);
      after = event->sequence;
    }
    if (!answer.parts[i].is_complete) unread.push_back({readers[i], after});
  }
  return unread;
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

bool read_views(UnitOfWork& unit, std::span<ViewReader* const> readers) {
  const bool has_pending = UnitAccess::count_pending(unit) > 0;
  std::vector<TagNeed> needs;
  std::vector<ViewReader*> wanted;
  std::vector<DecisionQuestion::Part> parts;
  for (ViewReader* const reader : readers) {
    needs.insert(needs.end(), reader->needs().begin(), reader->needs().end());
    if (reader->last_only() && has_pending && has_pending_for(unit, *reader)) continue;
    wanted.push_back(reader);
    parts.push_back({&reader->item(), reader->last_only(), reader->with_tags()});
  }
  DecisionAnswer answer = UnitAccess::ask(unit, needs, parts);
  if (answer.appended) return false;
  // Depends on the views before they see any event: a caller that catches a read error has seen a
  // part.
  for (const ViewReader* const reader : readers) UnitAccess::depend_on(unit, reader->item());

  EventLog& log = UnitAccess::log(unit);
  const GlobalSequence position = UnitAccess::position(unit).head;
  std::vector<Unread> scanned;
  for (const Unread& one : take_answered(answer, wanted)) {
    if (one.reader->last_only()) {
      take_last(log, *one.reader, position);
    } else {
      scanned.push_back(one);
    }
  }
  take_all(log, scanned, position);
  if (has_pending) {
    for (ViewReader* const reader : readers) take_pending(unit, *reader);
  }
  return true;
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
  UnitOfWork unit{log};
  UnitAccess::decide_under(unit, options.append_id);
  run(unit);
  if (const auto& found = UnitAccess::decided_before(unit)) return *found;
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

#include "projections/author.hpp"

#include <stela/framework/error.hpp>

#include <chrono>
#include <utility>

namespace stela::test {

Desk::Desk(const std::string& path, const std::string& vfs)
    : store{sqlite::open(path, {.busy_timeout = std::chrono::milliseconds{0}, .vfs = vfs})},
      projections{store} {
  projections.add_inline(Copies{});
  listening = store.on_commit([this](const CommitNotice& notice) {
    EventDecoder<AnyPage> decoder{Codec::json};
    for (const StoredEvent& event : notice.events) {
      decoder.decode(event, [&](const auto& page) { heard[event.sequence.value()] = shown(page); });
    }
  });
}

std::map<std::int64_t, std::string> pages_of(Store& store) {
  std::map<std::int64_t, std::string> pages;
  EventDecoder<AnyPage> decoder{Codec::json};
  for (const StoredEvent& event : store.read_all()) {
    decoder.decode(event, [&](const auto& page) { pages[event.sequence.value()] = shown(page); });
  }
  return pages;
}

// --- what is done

void Author::act(EventLog& log, int depth) {
  switch (up_to(9)) {
    case 0:
      return load(log, depth);
    case 1:
      held_.push_back({Diary{some_id()}});
      return some_held().diary.write(type(), text());
    case 2:
      if (held_.size() > 1) held_.erase(held_.begin() + up_to(static_cast<int>(held_.size()) - 1));
      return held_.push_back(some_held());
    case 3:
    case 4:
      return some_held().diary.write(type(), text());
    case 5:
    case 6:
      return save(log, some_held());
    case 7:
      return unit(log);
    default:
      return transact(log, depth);
  }
}

Author::Held& Author::some_held() {
  if (held_.empty()) held_.push_back({Diary{some_id()}});
  if (held_.size() > 12) held_.erase(held_.begin());
  return held_[static_cast<std::size_t>(up_to(static_cast<int>(held_.size()) - 1))];
}

void Author::load(EventLog& log, int depth) {
  if (auto found = Repository<Diary>{log}.find(some_id())) {
    held_.push_back({std::move(*found), depth > 0});
  }
}

void Author::save(EventLog& log, Held& held) {
  const std::string id = append_id();
  held.may_be_unusable = held.may_be_unusable || !id.empty();
  Repository<Diary>{log}.save(held.diary, {.append_id = id});
}

void Author::unit(EventLog& log) {
  UnitOfWork unit{log};
  if (Diary* const diary = unit.find(some_id())) diary->write(type(), text());
  const Id<Diary> other = Id<Diary>::from("unit-" + std::to_string(up_to(1)));
  unit.append(other.stream(), ExpectedVersion::any(), Page<2>{text()});
  if (one_in(2)) {
    unit.in_transaction([&](Transaction&) {
      if (one_in(3)) throw RollBack{};
    });
  }
  unit.commit({.append_id = append_id()});
}

void Author::transact(EventLog& log, int depth) {
  if (depth > 2) return;
  log.transact([&](Transaction& transaction) {
    act_inside(transaction, depth + 1);
    if (one_in(3)) throw RollBack{};
  });
}

/// What fails inside is mostly caught: the transaction goes on without it.
void Author::act_inside(Transaction& transaction, int depth) {
  for (int i = up_to(4); i >= 0; --i) {
    try {
      act(transaction, depth);
    } catch (const RollBack&) {
    } catch (const ConcurrencyConflict&) {
    } catch (const UsageError&) {
    }
    check_held(transaction);
  }
}

void Author::doubt() {
  for (Held& held : held_) held.may_be_unusable = true;
}

// --- what must hold

std::string Author::flaw(EventLog& log) {
  check_held(log);
  for (int i = 0; i <= 2; ++i) {
    if (auto loaded = Repository<Diary>{log}.find(Id<Diary>::from(std::to_string(i)))) {
      check(log, {std::move(*loaded)});
    }
  }
  return std::exchange(flaw_, {});
}

void Author::check_held(EventLog& log) {
  for (const Held& held : held_) check(log, held);
}

/// The state of a usable aggregate is that of the events up to its version, and of its changes.
void Author::check(EventLog& log, const Held& held) {
  ++asked_;
  StreamVersion version;
  try {
    version = held.diary.version();
  } catch (const UsageError& e) {
    if (!held.may_be_unusable) flaw_ += std::string{e.what()} + '\n';
    return;
  }
  ++usable_;
  DiaryState state;
  EventDecoder<AnyPage> decoder{Codec::json};
  StreamVersion reached;
  for (const StoredEvent& event : log.read_stream(held.diary.stream(), {.to = version})) {
    decoder.decode(event, [&](const auto& page) { state.apply(page); });
    reached = event.version;
  }
  for (const auto& change : held.diary.changes()) {
    std::visit([&](const auto& page) { state.apply(page); }, change);
  }
  if (reached == version && held.diary.state().pages == state.pages) return;
  flaw_ += held.diary.stream().name() + " says version " + std::to_string(version.value());
  flaw_ += " of " + std::to_string(reached.value()) + ":";
  for (const std::string& page : held.diary.state().pages) flaw_ += ' ' + page;
  flaw_ += ", and stored are:";
  for (const std::string& page : state.pages) flaw_ += ' ' + page;
  flaw_ += '\n';
}

}  // namespace stela::test

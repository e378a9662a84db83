#include "faults/writing_process.hpp"

#include "faults/settings.hpp"

#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/framework/error.hpp>

#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

namespace stela::test {
namespace {

void run_sql(sqlite3* database, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw StoreFailed{sqlite3_errmsg(database)};
  }
}

/// What a caller does in its own transaction: rows of its own.
void append_with_rows(Store& store, const Attempt& attempt) {
  store.transact([&](Transaction& transaction) {
    sqlite3* const database = sqlite::handle(transaction);
    run_sql(database, "CREATE TABLE IF NOT EXISTS notes (payload TEXT NOT NULL)");
    for (const Entry& entry : attempt.entries()) {
      run_sql(database, "INSERT INTO notes VALUES ('" + entry.payload + "')");
    }
    append(transaction, attempt.appends);
  });
}

GlobalSequence carry_out(Store& store, const Attempt& attempt) {
  if (attempt.kind != Attempt::Kind::with_rows) {
    return append(store, attempt.appends, attempt.append_id).first;
  }
  append_with_rows(store, attempt);
  // Its events stand somewhere behind the lock; the parent finds them by their payloads.
  return GlobalSequence{0};
}

/// Which attempt a payload is of.
std::optional<AttemptId> attempt_of(const std::string& payload) {
  AttemptId id;
  long long number = 0;
  const char* const format = R"({"attempt":"%d.%d.%lld",)";
  if (std::sscanf(payload.c_str(), format, &id.run, &id.thread, &number) != 3) return std::nullopt;
  id.number = number;
  return id;
}

}  // namespace

std::string_view to_string(Place place) noexcept {
  switch (place) {
    case Place::nowhere:
      return "anywhere";
    case Place::opening:
      return "opening";
    case Place::at_begin:
      return "beginning a transaction";
    case Place::before_commit:
      return "about to commit";
    case Place::committing:
      return "committing";
    case Place::after_commit:
      return "having committed";
    case Place::checkpointing:
      return "checkpointing";
    case Place::closing:
      return "closing";
  }
  return "?";
}

Attempt Attempt::of(std::uint64_t seed, const AttemptId& id) {
  Dice dice{mix(mix(seed, static_cast<std::uint64_t>(id.run * 100 + id.thread)),
                static_cast<std::uint64_t>(id.number))};
  Attempt attempt;
  attempt.kind = static_cast<Kind>(dice.below(3));
  std::string name = std::to_string(id.run);
  name += '.' + std::to_string(id.thread) + '.' + std::to_string(id.number);
  if (attempt.kind == Kind::with_id) attempt.append_id = name;
  const std::int64_t streams = dice.one_in(3) ? 2 : 1;
  int part = 0;
  for (std::int64_t i = 0; i < streams; ++i) {
    // A stream of its own now and then, else one of a few that all write to.
    const bool is_new = i == 0 && dice.one_in(4);
    const std::string key = is_new ? name : std::to_string(2 * dice.below(4) + i);
    PlainAppend one{StreamId::of("order", key),
                    is_new ? ExpectedVersion::none() : ExpectedVersion::any()};
    const std::int64_t events = dice.one_in(10) ? 40 : dice.between(1, 5);
    for (std::int64_t e = 0; e < events; ++e) {
      std::string payload = R"({"attempt":")" + name;
      payload += R"(","part":)";
      payload += std::to_string(++part);
      payload += R"(,"fill":")";
      payload.append(static_cast<std::size_t>(dice.one_in(20) ? dice.below(9000) : dice.below(300)),
                     'x');
      payload += R"("})";
      one.payloads.push_back(std::move(payload));
    }
    attempt.appends.push_back(std::move(one));
  }
  return attempt;
}

std::vector<Entry> Attempt::entries() const {
  std::vector<Entry> entries;
  for (const PlainAppend& one : appends) {
    for (const std::string& payload : one.payloads) {
      entries.push_back({0, one.stream.name(), 0, payload});
    }
  }
  return entries;
}

void write_until_stopped(const WritingOptions& options, WritingState& state, const Pipe& promises) {
  PhaseWatcher watcher{state, options.watcher};
  const FaultVfs vfs{watcher};
  auto store = sqlite::open(options.path, {.durability = options.durability,
                                           .checkpoint_pages = options.checkpoint_pages,
                                           .vfs = vfs.name()});
  watcher.begin();
  const auto write = [&](int thread) {
    for (std::int64_t number = 1; !state.stop; ++number) {
      const AttemptId id{options.run, thread, number};
      const Attempt attempt = Attempt::of(options.seed, id);
      state.begun[static_cast<std::size_t>(thread)] = number;
      const GlobalSequence first = carry_out(store, attempt);
      std::string promise = std::to_string(thread);
      promise += ' ' + std::to_string(number) + ' ' + std::to_string(first.value()) + '\n';
      promises.write(promise);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int thread = 1; thread < WritingState::threads; ++thread) {
      threads.emplace_back([&, thread] { write(thread); });
    }
    write(0);
  }
  watcher.end(Phase::closing);
}

Attempts parse_promises(int run, const std::string& text) {
  Attempts promises;
  std::istringstream lines{text};
  AttemptId id{run};
  for (std::int64_t first = 0; lines >> id.thread >> id.number >> first;) promises[id] = first;
  return promises;
}

std::string find_attempts(std::uint64_t seed, const std::vector<Entry>& entries, std::size_t from,
                          Attempts& found) {
  for (std::size_t i = from; i < entries.size();) {
    const auto id = attempt_of(entries[i].payload);
    if (!id) return "event " + std::to_string(i + 1) + " is of no attempt";
    if (!found.emplace(*id, entries[i].sequence).second) return "an attempt stands twice";
    for (const Entry& part : Attempt::of(seed, *id).entries()) {
      if (i == entries.size() || entries[i].payload != part.payload ||
          entries[i].stream != part.stream) {
        return "an attempt is half-written at event " + std::to_string(i + 1);
      }
      ++i;
    }
  }
  return {};
}

std::string missing_promise(const Attempts& promised, const Attempts& found) {
  for (const auto& [id, first] : promised) {
    const auto it = found.find(id);
    if (it != found.end() && (first == 0 || it->second == first)) continue;
    std::string text = "append " + std::to_string(id.number) + " of thread ";
    text += std::to_string(id.thread) + " of process " + std::to_string(id.run);
    text += it == found.end() ? " was acknowledged and is lost" : " has moved";
    return text;
  }
  return {};
}

void PhaseWatcher::begin() noexcept {
  if (state_.halt_at == Place::opening) halt();
  active_ = true;
  state_.phase = Phase::outside;
}

void PhaseWatcher::end(Phase phase) noexcept {
  active_ = false;
  state_.phase = phase;
}

void PhaseWatcher::move_to(Phase phase) noexcept {
  if (active_) state_.phase = phase;
}

void PhaseWatcher::pass(Place place) const noexcept {
  if (state_.halt_at == place && --state_.halt_at_call == 0) halt();
}

void PhaseWatcher::halt() const noexcept {
  state_.halted = true;
  for (;;) pause();
}

Verdict PhaseWatcher::before(const FileCall& call) noexcept {
  if (call.operation == FileOperation::write && call.file == FileKind::wal) {
    if (state_.phase == Phase::inside) pass(Place::before_commit);
    move_to(Phase::committing);
  }
  if (state_.phase == Phase::opening) pass(Place::opening);
  if (state_.phase == Phase::committing) pass(Place::committing);
  if (state_.phase == Phase::checkpointing) pass(Place::checkpointing);
  if (state_.phase == Phase::closing) pass(Place::closing);
  return next_ != nullptr ? next_->before(call) : Verdict::proceed;
}

void PhaseWatcher::after(const FileCall& call, int code) noexcept {
  if (next_ != nullptr) next_->after(call, code);
  if (code != SQLITE_OK) return;
  if (call.is_exclusive(checkpoint_slot)) {
    checkpointing_ = !call.releases();
    move_to(call.releases() ? Phase::outside : Phase::checkpointing);
  } else if (call.is_exclusive(write_slot) && !checkpointing_) {
    move_to(call.releases() ? Phase::outside : Phase::inside);
    if (active_) pass(call.releases() ? Place::after_commit : Place::at_begin);
  }
}

}  // namespace stela::test

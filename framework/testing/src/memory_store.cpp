#include "memory_core.hpp"

#include <set>

namespace stela::testing {

MemoryStore::MemoryStore() : MemoryStore{Options{}} {}
MemoryStore::MemoryStore(const Options& options) : core_{std::make_unique<Core>(options)} {}
MemoryStore::~MemoryStore() = default;

const Conventions& MemoryStore::conventions() const noexcept {
  return core_->conventions;
}

AppendResult MemoryStore::append(const AppendRequest& request) {
  check_append(request, core_->conventions);
  AppendResult result;
  transact([&](Transaction& transaction) { result = transaction.append(request); });
  return result;
}

void MemoryStore::transact(FunctionRef<void(Transaction&)> work) {
  core_->refuse_inside();
  std::unique_lock turn{core_->turn};
  OpenTransaction transaction{*core_};
  std::vector<std::shared_ptr<const Row>> rows;
  std::vector<StoredEvent> events;
  const auto before = static_cast<std::ptrdiff_t>(core_->rows.size());
  core_->run(transaction, [&](Transaction& open) {
    work(open);
    // Copied before the commit, so that a lack of memory here prevents the commit.
    rows.assign(core_->rows.begin() + before, core_->rows.end());
    for (const auto& row : rows) events.push_back(row->view());
  });
  turn.unlock();
  if (!events.empty()) core_->listeners.notify({events});
  for (const auto& [stream, snapshot] : transaction.snapshots()) {
    if (snapshot) {
      save_snapshot(stream, *snapshot);
    } else {
      drop_snapshot(stream);
    }
  }
}

Subscription MemoryStore::on_commit(std::function<void(const CommitNotice&)> listener) {
  return core_->listeners.add(std::move(listener));
}

std::shared_ptr<const TransactionOutcome> MemoryStore::outcome_of(GlobalSequence) {
  // Uncommitted events can only be read through the transaction.
  return nullptr;
}

EventRange MemoryStore::read_stream(const StreamId& stream, const StreamQuery& query) {
  std::size_t committed = 0;
  {
    const std::lock_guard lock{core_->mutex};
    committed = core_->committed;
  }
  return range_of(core_->find(stream, query, committed), query.direction, query.limit);
}

EventRange MemoryStore::read(const Query& query, const QueryRange& range) {
  check_query(query);
  std::size_t committed = 0;
  {
    const std::lock_guard lock{core_->mutex};
    committed = core_->committed;
  }
  return range_of(core_->find(query, range, committed), range.direction, range.limit);
}

Standpoint MemoryStore::standpoint(std::span<const TagNeed> needs) {
  // An open transaction may know of tags that aren't committed yet.
  std::unique_lock turn{core_->turn, std::defer_lock};
  if (!core_->turn.is_own()) turn.lock();
  const GlobalSequence head = last_sequence();
  MemoryState saved = core_->state;
  try {
    core_->check_needs(needs, static_cast<std::size_t>(head.value()));
  } catch (...) {
    core_->restore(std::move(saved));
    throw;
  }
  return {.head = head, .store = core_->conventions.store};
}

std::optional<AppendResult> MemoryStore::find_append(std::string_view append_id) {
  // An open transaction may hold an id that isn't committed yet.
  std::unique_lock turn{core_->turn, std::defer_lock};
  if (!core_->turn.is_own()) turn.lock();
  return core_->find_append(append_id);
}

EventRange MemoryStore::read_all(const AllQuery& query) {
  std::vector<std::shared_ptr<const Row>> found;
  const std::lock_guard lock{core_->mutex};
  for (std::size_t i = 0; i < core_->committed; ++i) {
    const auto& row = core_->rows[i];
    if (row->sequence >= query.from && row->sequence <= query.to &&
        (!query.since || row->recorded_at >= *query.since) &&
        (!query.until || row->recorded_at <= *query.until) &&
        matches(query.streams, row->stream.name()) &&
        matches(query.categories, row->stream.category()) &&
        matches(query.event_types, row->kind.type)) {
      found.push_back(row);
    }
  }
  return range_of(std::move(found), query.direction, query.limit);
}

EventRange MemoryStore::read_at(std::span<const GlobalSequence> sequences) {
  const std::set<GlobalSequence> wanted{sequences.begin(), sequences.end()};
  std::vector<std::shared_ptr<const Row>> found;
  const std::lock_guard lock{core_->mutex};
  for (std::size_t i = 0; i < core_->committed; ++i) {
    if (wanted.contains(core_->rows[i]->sequence)) found.push_back(core_->rows[i]);
  }
  return range_of(std::move(found), Direction::forward, no_limit);
}

GlobalSequence MemoryStore::last_sequence() {
  const std::lock_guard lock{core_->mutex};
  return GlobalSequence{static_cast<std::int64_t>(core_->committed)};
}

TagCatalogue MemoryStore::tag_catalogue() {
  const std::lock_guard lock{core_->mutex};
  TagCatalogue catalogue{.types = core_->state.tag_facts.list()};
  for (std::size_t i = 0; i < core_->committed; ++i) {
    catalogue.has_tags = catalogue.has_tags || !core_->rows[i]->tags.empty();
  }
  return catalogue;
}

std::optional<StoredSnapshot> MemoryStore::find_snapshot(const StreamId& stream, StreamVersion to,
                                                         GlobalSequence up_to) {
  const std::lock_guard lock{core_->mutex};
  const auto found = core_->snapshots.find(stream);
  if (found == core_->snapshots.end() || found->second.version > to ||
      found->second.sequence > up_to) {
    return std::nullopt;
  }
  return found->second;
}

void MemoryStore::save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) {
  const std::lock_guard lock{core_->mutex};
  const auto [kept, is_new] = core_->snapshots.try_emplace(stream, snapshot);
  if (!is_new && snapshot.version >= kept->second.version) kept->second = snapshot;
}

void MemoryStore::drop_snapshot(const StreamId& stream) {
  const std::lock_guard lock{core_->mutex};
  core_->snapshots.erase(stream);
}

void MemoryStore::attach(TransactionParticipant& participant) {
  core_->refuse_inside();
  const std::lock_guard turn{core_->turn};
  for (const TransactionParticipant* const attached : core_->participants) {
    if (attached->name() != participant.name()) continue;
    throw UsageError{"'" + std::string{participant.name()} +
                     "' takes part in the appends of this store already; attach it once"};
  }
  const auto [required, is_new] =
      core_->state.required.try_emplace(std::string{participant.name()}, participant.detail());
  if (!participant.accepts(required->second)) {
    throw UsageError{"participant '" + std::string{participant.name()} +
                     "' is registered in this store as '" + required->second + "'"};
  }
  core_->participants.push_back(&participant);
}

void MemoryStore::detach(TransactionParticipant& participant) {
  // Inside a transaction of its own, this thread already has the turn.
  if (core_->turn.is_own()) {
    std::erase(core_->participants, &participant);
    return;
  }
  core_->turn.lock_at_last();
  const std::lock_guard turn{core_->turn, std::adopt_lock};
  std::erase(core_->participants, &participant);
}

void MemoryStore::forget_participant(std::string_view name) {
  core_->refuse_inside();
  const std::lock_guard turn{core_->turn};
  const auto found = core_->state.required.find(name);
  if (found != core_->state.required.end()) core_->state.required.erase(found);
}

}  // namespace stela::testing

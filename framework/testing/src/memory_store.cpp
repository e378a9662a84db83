#include "memory_rows.hpp"

#include <stela/framework/append_check.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/metadata.hpp>
#include <stela/framework/tag_facts.hpp>
#include <stela/framework/transaction_scope.hpp>
#include <stela/testing/memory_store.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace stela::testing {
namespace {

struct StreamHead {
  StreamVersion version;
  StreamVersion published;
};

struct AppendedBefore {
  GlobalSequence first;
  GlobalSequence last;
  /// Of the streams that got events: how many, and which version they reached.
  std::map<StreamId, std::size_t> events;
  std::map<StreamId, StreamVersion> versions;
};

/// Everything that a transaction may change, but for the events, which are only cut off.
struct State {
  std::map<StreamId, StreamHead> heads;
  std::map<std::string, AppendedBefore, std::less<>> append_ids;
  std::map<std::string, std::string, std::less<>> required;
  TagFacts tag_facts;
};

/// Whose transaction is open: one at a time.
/// Threads: any number at once.
class Turn {
 public:
  explicit Turn(std::chrono::milliseconds patience) noexcept : patience_{patience} {}

  /// StoreBusy if another thread has it for longer than the patience.
  void lock() {
    std::unique_lock lock{mutex_};
    if (!ended_.wait_for(lock, patience_, [this] { return !is_taken(); })) {
      throw StoreBusy{"the transaction of another thread stayed open for " +
                      std::to_string(patience_.count()) +
                      " ms; don't wait in a transaction for a thread that writes"};
    }
    owner_ = std::this_thread::get_id();
  }
  /// However long that takes.
  void lock_at_last() {
    std::unique_lock lock{mutex_};
    ended_.wait(lock, [this] { return !is_taken(); });
    owner_ = std::this_thread::get_id();
  }
  void unlock() noexcept {
    {
      const std::lock_guard lock{mutex_};
      owner_ = std::thread::id{};
    }
    ended_.notify_one();
  }
  bool is_own() const noexcept { return owner_ == std::this_thread::get_id(); }

 private:
  bool is_taken() const noexcept { return owner_ != std::thread::id{}; }

  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable ended_;
  /// Set under mutex_.
  std::atomic<std::thread::id> owner_{};
};

}  // namespace

class MemoryStore::Core {
 public:
  explicit Core(const Options& options)
      : clock{*options.clock},
        turn{options.busy_timeout},
        ids{options.random != nullptr ? UuidGenerator{*options.random} : UuidGenerator{}} {
    conventions = {options.codec, options.publishes, options.log, options.metrics};
  }

  AppendResult append(const AppendRequest& request, OpenTransaction& transaction);
  /// Carries the work out and commits it.
  void run(OpenTransaction& transaction, FunctionRef<void(Transaction&)> work);
  /// Among the first `count` rows.
  std::vector<std::shared_ptr<const Row>> find(const StreamId& stream, const StreamQuery& query,
                                               std::size_t count);

  std::vector<std::shared_ptr<const Row>> find(const Query& query, const QueryRange& range,
                                               std::size_t count);
  std::optional<AppendResult> find_append(std::string_view append_id);
  /// TagsMissing if one of the first `count` rows lacks a tag that is needed. True if it has noted
  /// what types declare.
  bool check_needs(std::span<const TagNeed> needs, std::size_t count);
  /// The type declares these categories from now on. False if that was known.
  bool note_tags(std::string_view type, std::span<const TagDeclaration> declared);

  /// Of all rows, the open transaction's too.
  GlobalSequence last_sequence() const noexcept {
    return GlobalSequence{static_cast<std::int64_t>(rows.size())};
  }
  /// UsageError inside the transaction of this thread.
  void refuse_inside() const {
    if (!turn.is_own()) return;
    throw UsageError{
        "a store was written to from inside its own transaction; save and append through the "
        "Transaction that was handed in"};
  }
  /// Undoes what the open transaction did since there were `count` rows.
  void go_back_to(std::size_t count, State saved);
  void restore(State saved) {
    const std::lock_guard lock{mutex};
    state = std::move(saved);
  }

  const Clock& clock;
  Conventions conventions;
  CommitListeners listeners{conventions};
  /// Held by whoever writes, for as long as its transaction is open.
  Turn turn;

  /// Guards what follows against readers.
  std::mutex mutex;
  std::vector<std::shared_ptr<const Row>> rows;
  /// How many of the rows are committed: only these are for readers.
  std::size_t committed = 0;
  State state;
  std::map<StreamId, StoredSnapshot> snapshots;
  std::vector<TransactionParticipant*> participants;

 private:
  void check_participants() const;
  bool repeat(const AppendRequest& request, AppendResult& result) const;
  void check_condition(const AppendCondition& condition, const OpenTransaction& transaction) const;
  void check_versions(const AppendRequest& request);
  void append_event(const StreamAppend& append, const NewEvent& event, const AppendRequest& request,
                    const std::string& metadata, std::string& correlation);

  UuidGenerator ids;
  std::int32_t kinds_ = 0;
  std::map<std::tuple<std::string, int, bool>, EventKind> kinds_by_key_;
};

class MemoryStore::OpenTransaction final : public Transaction {
 public:
  explicit OpenTransaction(Core& core) noexcept : core_{core} {
    outcomes_.begin(core_.last_sequence());
  }

  const Conventions& conventions() const noexcept override { return core_.conventions; }
  AppendResult append(const AppendRequest& request) override {
    check_append(request);
    AppendResult result;
    transact([&](Transaction&) { result = core_.append(request, *this); });
    return result;
  }
  EventRange read_stream(const StreamId& stream, const StreamQuery& query) override {
    return range_of(core_.find(stream, query, core_.rows.size()), query.direction, query.limit);
  }
  EventRange read(const Query& query, const QueryRange& range) override {
    check_query(query);
    return range_of(core_.find(query, range, core_.rows.size()), range.direction, range.limit);
  }
  Standpoint standpoint(std::span<const TagNeed> needs) override {
    transact([&](Transaction&) {
      if (core_.check_needs(needs, core_.rows.size())) outcomes_.note_tags();
    });
    const GlobalSequence head = core_.last_sequence();
    return {.head = head, .outcome = outcomes_.of_position(head)};
  }
  std::optional<AppendResult> find_append(std::string_view append_id) override {
    return core_.find_append(append_id);
  }
  std::optional<StoredSnapshot> find_snapshot(const StreamId&, StreamVersion,
                                              GlobalSequence) override {
    return std::nullopt;
  }
  void save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) override {
    snapshots_.emplace_back(stream, snapshot);
  }
  void drop_snapshot(const StreamId& stream) override {
    snapshots_.emplace_back(stream, std::nullopt);
  }
  void transact(FunctionRef<void(Transaction&)> work) override {
    const std::size_t before = core_.rows.size();
    const std::size_t snapshots = snapshots_.size();
    const std::size_t depth = outcomes_.depth();
    State saved = core_.state;
    outcomes_.open(core_.last_sequence());
    try {
      work(*this);
      outcomes_.close(depth, TransactionOutcome::State::committed);
    } catch (...) {
      outcomes_.close(depth, TransactionOutcome::State::rolled_back);
      while (snapshots_.size() > snapshots) snapshots_.pop_back();
      core_.go_back_to(before, std::move(saved));
      throw;
    }
  }
  std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) override {
    return outcomes_.of(sequence);
  }

  bool has(const TransactionOutcome* outcome) const noexcept { return outcomes_.has(outcome); }
  void settle(TransactionOutcome::State state) noexcept { outcomes_.settle(state); }
  /// Written, or without a value dropped, behind the commit.
  const auto& snapshots() const noexcept { return snapshots_; }

 private:
  Core& core_;
  OpenOutcomes outcomes_;
  std::vector<std::pair<StreamId, std::optional<StoredSnapshot>>> snapshots_;
};

// --- the core

std::vector<std::shared_ptr<const Row>> MemoryStore::Core::find(const StreamId& stream,
                                                                const StreamQuery& query,
                                                                std::size_t count) {
  const std::lock_guard lock{mutex};
  std::vector<std::shared_ptr<const Row>> found;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& row = rows[i];
    if (row->stream == stream && row->version >= query.from && row->version <= query.to &&
        row->sequence <= query.up_to) {
      found.push_back(row);
    }
  }
  return found;
}

std::vector<std::shared_ptr<const Row>> MemoryStore::Core::find(const Query& query,
                                                                const QueryRange& range,
                                                                std::size_t count) {
  const std::lock_guard lock{mutex};
  std::vector<std::shared_ptr<const Row>> found;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& row = rows[i];
    if (row->sequence <= range.after || row->sequence > range.up_to) continue;
    const StoredEvent event = row->view();
    if (std::any_of(query.items.begin(), query.items.end(),
                    [&](const QueryItem& item) { return matches(item, event); })) {
      found.push_back(row);
    }
  }
  return found;
}

std::optional<AppendResult> MemoryStore::Core::find_append(std::string_view append_id) {
  const std::lock_guard lock{mutex};
  const auto found = state.append_ids.find(append_id);
  if (found == state.append_ids.end()) return std::nullopt;
  return AppendResult{.first = found->second.first, .last = found->second.last, .repeated = true};
}

bool MemoryStore::Core::check_needs(std::span<const TagNeed> needs, std::size_t count) {
  bool has_noted = false;
  for (const TagNeed& need : needs) has_noted = note_tags(need.type, need.declared) || has_noted;
  const std::lock_guard lock{mutex};
  for (const TagNeed& need : needs) {
    const TagFact* const fact = state.tag_facts.find(need.type, need.category);
    const std::int64_t since =
        fact != nullptr ? fact->since : std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < count; ++i) {
      const Row& row = *rows[i];
      const bool has_its_stream_only =
          row.stream.category() == need.category && !need.is_of_several();
      if (row.kind.type == need.type && !has_its_stream_only && row.sequence.value() < since) {
        throw_tags_missing(need);
      }
    }
  }
  return has_noted;
}

void MemoryStore::Core::check_condition(const AppendCondition& condition,
                                        const OpenTransaction& transaction) const {
  if (!transaction.has(condition.outcome.get())) {
    throw ConditionConflict::of_rollback(last_sequence());
  }
  const GlobalSequence after = condition.after.value_or(GlobalSequence{0});
  if (after > last_sequence()) {
    throw ConditionConflict::of_missing_position(after, last_sequence());
  }
  for (auto at = static_cast<std::size_t>(std::max<std::int64_t>(after.value(), 0));
       at < rows.size(); ++at) {
    const StoredEvent event = rows[at]->view();
    const auto& items = condition.query.items;
    const auto item = std::find_if(items.begin(), items.end(),
                                   [&](const QueryItem& one) { return matches(one, event); });
    if (item == items.end()) continue;
    throw ConditionConflict{event.sequence, static_cast<std::size_t>(item - items.begin())};
  }
}

void MemoryStore::Core::check_versions(const AppendRequest& request) {
  std::map<StreamId, StreamVersion> after;
  for (const StreamAppend& append : request.streams) {
    const auto [head, is_new] = after.try_emplace(append.stream, StreamVersion{});
    if (is_new) head->second = state.heads[append.stream].version;
    if (!append.expected.allows(head->second)) {
      throw ConcurrencyConflict{append.stream.name(), append.expected.describe(), head->second};
    }
    head->second =
        StreamVersion{head->second.value() + static_cast<std::int64_t>(append.events.size())};
  }
}

bool MemoryStore::Core::note_tags(std::string_view type, std::span<const TagDeclaration> declared) {
  const std::lock_guard lock{mutex};
  std::vector<TagFact> additions = state.tag_facts.additions(type, declared);
  for (TagFact& fact : additions) {
    const bool is_known = std::any_of(rows.begin(), rows.end(),
                                      [&](const auto& row) { return row->kind.type == type; });
    if (fact.since == TagFacts::from_now_on) {
      fact.since = is_known ? last_sequence().value() + 1 : 0;
    }
    state.tag_facts.add(std::move(fact));
  }
  return !additions.empty();
}

void MemoryStore::Core::go_back_to(std::size_t count, State saved) {
  const std::lock_guard lock{mutex};
  rows.resize(count);
  state = std::move(saved);
  for (TransactionParticipant* const participant : participants) participant->forget();
}

void MemoryStore::Core::check_participants() const {
  for (const auto& [name, detail] : state.required) {
    const auto attached =
        std::find_if(participants.begin(), participants.end(), [&](const auto* participant) {
          return participant->name() == name && participant->accepts(detail);
        });
    if (attached == participants.end()) {
      throw ParticipantMissing{"this store requires '" + name + "' (" + detail +
                               ") to take part in every append; nothing was written"};
    }
  }
}

bool MemoryStore::Core::repeat(const AppendRequest& request, AppendResult& result) const {
  const auto before = state.append_ids.find(request.append_id);
  if (request.append_id.empty() || before == state.append_ids.end()) return false;
  std::map<StreamId, std::size_t> wanted;
  for (const StreamAppend& append : request.streams) {
    if (!append.events.empty()) wanted[append.stream] += append.events.size();
  }
  if (!wanted.empty() && wanted != before->second.events) throw_id_of_another(request.append_id);
  result = {.first = before->second.first, .last = before->second.last, .repeated = true};
  for (const StreamAppend& append : request.streams) {
    const auto version = before->second.versions.find(append.stream);
    result.versions.push_back(version != before->second.versions.end() ? version->second
                                                                       : StreamVersion{});
  }
  return true;
}

AppendResult MemoryStore::Core::append(const AppendRequest& request, OpenTransaction& transaction) {
  check_participants();
  AppendResult result;
  if (repeat(request, result)) return result;
  if (request.condition != nullptr) check_condition(*request.condition, transaction);
  check_versions(request);

  const std::string metadata = metadata::encode(request.context);
  std::string correlation = request.context.correlation_id;
  const std::size_t before = rows.size();
  for (const StreamAppend& append : request.streams) {
    for (const NewEvent& event : append.events) {
      append_event(append, event, request, metadata, correlation);
    }
    result.versions.push_back(state.heads[append.stream].version);
  }
  if (rows.size() > before) {
    result.first = rows[before]->sequence;
    result.last = rows.back()->sequence;
  }

  std::vector<StoredEvent> events;
  for (std::size_t i = before; i < rows.size(); ++i) events.push_back(rows[i]->view());
  if (!events.empty()) {
    for (TransactionParticipant* const participant : participants) {
      participant->on_append(transaction, events);
    }
  }
  if (!request.append_id.empty()) {
    auto& kept = state.append_ids[std::string{request.append_id}];
    kept.first = result.first;
    kept.last = result.last;
    for (std::size_t i = 0; i < request.streams.size(); ++i) {
      const StreamAppend& append = request.streams[i];
      if (append.events.empty()) continue;
      kept.events[append.stream] += append.events.size();
      kept.versions[append.stream] = result.versions[i];
    }
  }
  return result;
}

void MemoryStore::Core::append_event(const StreamAppend& append, const NewEvent& event,
                                     const AppendRequest& request, const std::string& metadata,
                                     std::string& correlation) {
  EventKind& kind = kinds_by_key_[{std::string{event.type}, event.schema_version, event.publishes}];
  if (kind.number == 0) {
    kind = {++kinds_, std::string{event.type}, event.schema_version, event.publishes};
  }
  if (event.declared) {
    note_tags(event.type, *event.declared);
  } else {
    state.tag_facts.check_carries(event, append.stream);
  }
  const Context* const own = event.context;
  StreamHead& head = state.heads[append.stream];
  const Timestamp now = clock.now();
  auto row = std::make_shared<const Row>(
      Row{.stream = append.stream,
          .kind = kind,
          .correlation =
              own != nullptr && !own->correlation_id.empty() ? own->correlation_id : correlation,
          .metadata = own != nullptr ? metadata::encode(*own) : metadata,
          .payload = std::string{event.payload},
          .sequence = GlobalSequence{static_cast<std::int64_t>(rows.size()) + 1},
          .version = head.version.next(),
          .id = event.id.is_nil() ? ids.next(now) : event.id,
          .recorded_at = now,
          .causation_id = own != nullptr ? own->causation_id : request.context.causation_id,
          .published_before = head.published,
          .tags = join_tags(event.tags, append.stream)});
  if (correlation.empty()) correlation = row->id.to_string();
  head.version = row->version;
  if (event.publishes) head.published = row->version;
  const std::lock_guard lock{mutex};
  rows.push_back(std::move(row));
}

void MemoryStore::Core::run(OpenTransaction& transaction, FunctionRef<void(Transaction&)> work) {
  const std::size_t before = rows.size();
  State saved = state;
  const auto give_up = [&] {
    go_back_to(before, std::move(saved));
    transaction.settle(TransactionOutcome::State::rolled_back);
  };
  try {
    const detail::TransactionScope scope;
    work(transaction);
  } catch (const Error& e) {
    give_up();
    conventions.metrics->count("stela_store_failed_writes_total", 1,
                               {{"error", to_string(e.code())}});
    throw;
  } catch (...) {
    give_up();
    throw;
  }
  const std::lock_guard lock{mutex};
  committed = rows.size();
  transaction.settle(TransactionOutcome::State::committed);
  if (committed > before) {
    conventions.metrics->count("stela_store_commits_total", 1, {});
    conventions.metrics->count("stela_store_writes_total", 1, {});
    conventions.metrics->count("stela_store_events_total",
                               static_cast<std::int64_t>(committed - before), {});
  }
}

// --- the store

MemoryStore::MemoryStore() : MemoryStore{Options{}} {}
MemoryStore::MemoryStore(const Options& options) : core_{std::make_unique<Core>(options)} {}
MemoryStore::~MemoryStore() = default;

const Conventions& MemoryStore::conventions() const noexcept {
  return core_->conventions;
}

AppendResult MemoryStore::append(const AppendRequest& request) {
  check_append(request);
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
    // Before the commit: whoever has no memory for them has not committed.
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
  // What isn't committed can only be read through the transaction.
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
  State saved = core_->state;
  try {
    core_->check_needs(needs, static_cast<std::size_t>(head.value()));
  } catch (...) {
    core_->restore(std::move(saved));
    throw;
  }
  return {.head = head};
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
  // A transaction of this thread's own has the turn.
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

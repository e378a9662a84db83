#include "simulation/sqlite_twin.hpp"

#include "simulation/truth.hpp"
#include "sqlite/core.hpp"
#include "tables/relay_store.hpp"
#include "tables/stored_operations.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stela::sim {
namespace {

[[noreturn]] void differ(std::string_view call, std::string_view what) {
  throw Violation{
      0, std::string{"SQLite and the model differ in "}.append(call).append(": ").append(what)};
}

void compare(std::string_view call, std::string_view what, std::int64_t sqlite,
             std::int64_t model) {
  if (sqlite == model) return;
  differ(call, std::string{what} + " is " + std::to_string(sqlite) + ", and should be " +
                   std::to_string(model));
}

void compare(std::string_view call, std::string_view what, std::string_view sqlite,
             std::string_view model) {
  if (sqlite == model) return;
  differ(call, std::string{what}
                   .append(" is '")
                   .append(sqlite)
                   .append("', and should be '")
                   .append(model)
                   .append("'"));
}

constexpr std::string_view happened = "thing.happened";
constexpr std::string_view noted = "thing.noted";

}  // namespace

struct SharedStore::Real {
  Real(const Clock& clock, int partition_count, Fence fence)
      : store{sqlite::open_in_memory({.durability = sqlite::Durability::relaxed, .clock = &clock})},
        outbox{store, {.partition_count = partition_count, .fence = fence}},
        operations{store, outbox.partitioner()} {}

  /// The number that SQLite gave to a stream of the model's.
  std::int64_t number_of(std::int64_t stream) {
    std::int64_t& number = numbers[stream];
    if (number != 0) return number;
    sqlite::core_of(store).reading().read([&](sqlite::Connection& connection) {
      sqlite::Query query = connection.query("SELECT stream FROM streams WHERE name = ?1");
      const StreamId name = StreamId::of("thing", std::to_string(stream));
      if (query.bind(1, name.name()).step()) number = query.integer(0);
    });
    return number;
  }

  Store store;
  Outbox outbox;
  outbox::StoredOperations operations;
  std::unordered_map<std::int64_t, std::int64_t> numbers;
};

/// One worker's way to both.
class SharedStore::ComparingPort final : public relay::OutboxPort {
 public:
  ComparingPort(std::unique_ptr<relay::OutboxPort> model, Real& real)
      : model_{std::move(model)}, sqlite_{real.store, true}, real_{real} {}

  std::string store_id() const override { return sqlite_.store_id(); }

  int heartbeat(std::string_view worker, std::chrono::microseconds ttl,
                const relay::BrokerView& broker) override {
    const int purged = sqlite_.heartbeat(worker, ttl, broker);
    compare("heartbeat", "what was purged", purged, model_->heartbeat(worker, ttl, broker));
    return purged;
  }
  void leave(std::string_view worker) noexcept override {
    sqlite_.leave(worker);
    model_->leave(worker);
  }

  relay::Overview look() override {
    relay::Overview found = sqlite_.look();
    const relay::Overview expected = model_->look();
    compare("look", "the number of workers", std::ssize(found.workers),
            std::ssize(expected.workers));
    for (std::size_t i = 0; i < found.workers.size(); ++i) {
      compare("look", "a worker", found.workers[i], expected.workers[i]);
    }
    compare("look", "the number of workers that are cut off", std::ssize(found.cut_off),
            std::ssize(expected.cut_off));
    compare("look", "the number of partitions", std::ssize(found.partitions),
            std::ssize(expected.partitions));
    for (std::size_t i = 0; i < found.partitions.size(); ++i) {
      const auto& is = found.partitions[i];
      const auto& should = expected.partitions[i];
      const std::string name = is.id.label();
      compare("look", "a partition", is.id.number, should.id.number);
      compare("look", name + "'s owner", is.owner, should.owner);
      compare("look", name + " free", is.is_free, should.is_free);
      compare("look", name + " expired", is.is_expired, should.is_expired);
      compare("look", name + " stopped", is.is_stopped, should.is_stopped);
      compare("look", name + " lost", is.is_lost, should.is_lost);
      compare("look", name + " needed", is.is_needed, should.is_needed);
    }
    return found;
  }

  std::optional<relay::Standing> acquire(PartitionId partition, std::string_view worker,
                                         std::chrono::microseconds ttl) override {
    return same_standing(sqlite_.acquire(partition, worker, ttl),
                         model_->acquire(partition, worker, ttl));
  }
  std::optional<relay::Standing> acquire_lost(PartitionId partition, std::string_view worker,
                                              std::chrono::microseconds ttl) override {
    return same_standing(sqlite_.acquire_lost(partition, worker, ttl),
                         model_->acquire_lost(partition, worker, ttl));
  }
  static std::optional<relay::Standing> same_standing(
      std::optional<relay::Standing> found, const std::optional<relay::Standing>& expected) {
    compare("acquire", "success", found.has_value(), expected.has_value());
    if (!found) return found;
    compare("acquire", "the epoch", found->epoch, expected->epoch);
    compare("acquire", "published_through", found->published_through.value(),
            expected->published_through.value());
    compare("acquire", "the broker's sequence", static_cast<std::int64_t>(found->broker_sequence),
            static_cast<std::int64_t>(expected->broker_sequence));
    compare("acquire", "the broker's id", found->broker_id, expected->broker_id);
    compare("acquire", "the unclean end", found->unclean, expected->unclean);
    compare("acquire", "what is in flight", found->flight_count, expected->flight_count);
    compare("acquire", "how far", found->flight_through.value(), expected->flight_through.value());
    compare("acquire", "the attempts", found->attempts, expected->attempts);
    compare("acquire", "the backoff", found->backoff_left.count(), expected->backoff_left.count());
    compare("acquire", "the adoption", found->adopted, expected->adopted);
    return found;
  }

  bool renew(const relay::Lease& lease, std::chrono::microseconds ttl) override {
    return same("renew", sqlite_.renew(lease, ttl), model_->renew(lease, ttl));
  }
  void release(const relay::Lease& lease) override {
    sqlite_.release(lease);
    model_->release(lease);
  }

  std::unique_ptr<relay::PendingBatch> next(PartitionId partition, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override {
    auto found = sqlite_.next(partition, cursor, limit);
    const auto expected = model_->next(partition, cursor, limit);
    const std::string call = "next of " + partition.label();
    compare(call, "the number of messages", std::ssize(found->messages),
            std::ssize(expected->messages));
    for (std::size_t i = 0; i < found->messages.size(); ++i) {
      const relay::PendingMessage& is = found->messages[i];
      const relay::PendingMessage& should = expected->messages[i];
      compare(call, "a sequence", is.sequence.value(), should.sequence.value());
      compare(call, "a stream", is.stream, real_.number_of(should.stream));
      compare(call, "a redelivery", is.redelivery, should.redelivery);
      compare(call, "a generation", is.generation.number, should.generation.number);
      compare(call, "its first sequence", is.generation.first.value(),
              should.generation.first.value());
      compare(call, "attempts", is.attempts, should.attempts);
      compare(call, "behind parked", is.is_behind_parked, should.is_behind_parked);
      compare(call, "republished", is.is_republished, should.is_republished);
      if (is.event == nullptr) differ(call, is.problem);
      compare(call, "an id", is.event->id.to_string(), should.event->id.to_string());
    }
    return found;
  }

  std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) override {
    auto found = sqlite_.ids_of(sequences);
    if (found != model_->ids_of(sequences)) differ("ids_of", "an id");
    return found;
  }

  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool durable) override {
    return same("advance", sqlite_.advance(lease, advance, durable),
                model_->advance(lease, advance, durable));
  }
  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override {
    return same("note", sqlite_.note(lease, trouble), model_->note(lease, trouble));
  }
  bool stop(const relay::Lease& lease, StopReason reason, std::string_view detail) override {
    return same("stop", sqlite_.stop(lease, reason, detail), model_->stop(lease, reason, detail));
  }
  bool continue_lost(const relay::Lease& lease) override {
    return same("continue_lost", sqlite_.continue_lost(lease), model_->continue_lost(lease));
  }

 private:
  static bool same(std::string_view call, bool sqlite, bool model) {
    compare(call, "success", sqlite, model);
    return sqlite;
  }

  std::unique_ptr<relay::OutboxPort> model_;
  outbox::RelayStore sqlite_;
  Real& real_;
};

SharedStore::SharedStore(ModelStore& model, const Clock& clock, int partition_count, Fence fence,
                         bool sqlite)
    : model_{model} {
  if (sqlite) real_ = std::make_unique<Real>(clock, partition_count, fence);
}

SharedStore::~SharedStore() = default;

std::string SharedStore::id() const {
  return real_ ? outbox::RelayStore{real_->store, true}.store_id() : model_.id();
}

std::unique_ptr<relay::OutboxPort> SharedStore::port() {
  auto model = model_.port();
  if (!real_) return model;
  return std::make_unique<ComparingPort>(std::move(model), *real_);
}

void SharedStore::append(int stream, bool publishes, std::int64_t payload_bytes) {
  if (!real_) return model_.append(stream, publishes, payload_bytes);
  const StreamId name = StreamId::of("thing", std::to_string(stream));
  const NewEvent event{.type = publishes ? happened : noted,
                       .publishes = publishes,
                       .payload = ModelStore::payload_of(payload_bytes)};
  const StreamAppend append{.stream = name, .events = {&event, 1}};
  const AppendResult result = real_->store.append({.streams = {&append, 1}});
  const GlobalSequence sequence = result.last;
  const std::vector<EventId> ids = outbox::RelayStore{real_->store, true}.ids_of({&sequence, 1});
  model_.append(stream, publishes, payload_bytes, ids.front());
  compare("append", "the sequence", sequence.value(), model_.last_sequence());
}

void SharedStore::retry(std::int64_t stream, GlobalSequence through) {
  const std::int64_t expected = model_.retry(stream, through, "sim");
  if (!real_) return;
  compare("retry", "the count", real_->operations.retry(real_->number_of(stream), through, "sim"),
          expected);
}

void SharedStore::discard(GlobalSequence sequence) {
  const bool expected = model_.discard(sequence, "sim");
  if (real_) compare("discard", "success", real_->operations.discard(sequence, "sim"), expected);
}

void SharedStore::republish(std::span<const GlobalSequence> sequences) {
  const std::int64_t expected = model_.republish(sequences, "sim");
  if (!real_) return;
  compare("republish", "the count", real_->operations.republish(sequences, "sim"), expected);
}

void SharedStore::resize(int partition_count) {
  model_.resize(partition_count, "sim");
  if (real_) real_->operations.resize(partition_count, "sim");
}

void SharedStore::adopt(PartitionId partition) {
  model_.adopt(partition, std::nullopt, "sim");
  if (real_) real_->operations.adopt(partition, std::nullopt, "sim");
}

}  // namespace stela::sim

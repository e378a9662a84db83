#include <stela/framework/error.hpp>
#include <stela/outbox/outbox.hpp>

#include "outbox_sql.hpp"
#include "sqlite/core.hpp"
#include "sqlite/transaction.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace stela {

namespace sql = outbox::sql;
using sqlite::Connection;
using sqlite::Query;

/// Threads: on_append and forget belong to the thread that leads the store's transaction.
class Outbox::Participant final : public TransactionParticipant {
 public:
  Participant(sqlite::Store& the_store, const Partitioner& partitioner)
      : store{the_store}, partitioner_{partitioner} {}

  std::string_view name() const noexcept override { return "outbox"; }
  std::string_view detail() const noexcept override { return partitioner_.name(); }
  bool runs_user_code() const noexcept override { return false; }

  void on_append(Transaction& transaction, std::span<const StoredEvent> events) override {
    Connection& connection = sqlite::open_transaction(transaction).connection();
    for (const StoredEvent& event : events) {
      if (event.publishes()) enqueue(event, connection);
    }
  }

  void forget() noexcept override {
    partition_count_ = 0;
    positions_.clear();
  }

  sqlite::Store& store;

 private:
  void enqueue(const StoredEvent& event, Connection& connection) {
    if (partition_count_ == 0) {
      Query generation = connection.query(sql::current_generation);
      generation.step();
      partition_count_ = static_cast<int>(generation.integer(2));
    }
    const int partition = partition_of(partitioner_.key(event, scratch_), partition_count_);
    const auto [position, is_new] = positions_.try_emplace(partition, 0);
    if (is_new) {
      Query last = connection.query(sql::last_position);
      last.bind(1, std::int64_t{partition}).step();
      position->second = last.integer(0);
    }
    connection.query(sql::insert_message)
        .bind(1, std::int64_t{partition})
        .bind(2, event.sequence.value())
        .bind(3, ++position->second)
        .run();
  }

  const Partitioner& partitioner_;
  int partition_count_ = 0;
  std::unordered_map<int, std::int64_t> positions_;
  std::string scratch_;
};

namespace {

void settle_generation(Connection& connection, std::optional<int> wanted) {
  Query current = connection.query(sql::current_generation);
  if (current.step()) {
    if (wanted && *wanted != current.integer(2)) {
      throw UsageError{"this database's outbox has " + std::to_string(current.integer(2)) +
                       " partitions, and " + std::to_string(*wanted) +
                       " were asked for; leave the option out to take what the database has"};
    }
    return;
  }
  const std::int64_t count = wanted.value_or(1);
  if (count < 1 || count > 1024) {
    throw UsageError{"partition_count is 1 to 1024, not " + std::to_string(count)};
  }
  connection.query(sql::insert_generation)
      .bind(1, std::int64_t{1})
      .bind(2, std::int64_t{1})
      .bind(3, count)
      .run();
  for (std::int64_t partition = 0; partition < count; ++partition) {
    connection.query(sql::insert_partition).bind(1, partition).run();
  }
}

}  // namespace

Outbox::Outbox(sqlite::Store& store, const OutboxOptions& options)
    : participant_{std::make_unique<Participant>(store, *options.partitioner)} {
  store.core().migrate("outbox", sql::migrations);
  store.core().writer().run_statements(
      [&](Connection& connection) { settle_generation(connection, options.partition_count); });
  store.attach(*participant_);
}

Outbox::~Outbox() { participant_->store.detach(*participant_); }

sqlite::Store& Outbox::store() noexcept { return participant_->store; }

std::vector<int> Outbox::partitions() {
  std::vector<int> all;
  store().core().reading().read([&](Connection& connection) {
    Query query = connection.query(sql::partitions);
    while (query.step()) all.push_back(static_cast<int>(query.integer(0)));
  });
  return all;
}

std::vector<GlobalSequence> Outbox::next(int partition, int limit) {
  std::vector<GlobalSequence> sequences;
  store().core().reading().read([&](Connection& connection) {
    Query query = connection.query(sql::next_messages);
    query.bind(1, std::int64_t{partition}).bind(2, std::int64_t{limit});
    while (query.step()) sequences.emplace_back(query.integer(0));
  });
  return sequences;
}

void Outbox::mark_published(int partition, GlobalSequence through) {
  store().core().writer().run_statements(
      [&](Connection& connection) {
        connection.query(sql::advance_partition)
            .bind(1, std::int64_t{partition})
            .bind(2, through.value())
            .run();
        connection.query(sql::delete_published)
            .bind(1, std::int64_t{partition})
            .bind(2, through.value())
            .run();
      },
      sqlite::Sync::none);
}

}  // namespace stela

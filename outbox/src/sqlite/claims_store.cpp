#include "sqlite/claims_store.hpp"

#include "outbox_sql.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/relay.hpp"
#include "outbox_sql/workers.hpp"
#include "sqlite/advance.hpp"
#include "sqlite/backoff.hpp"
#include "sqlite/core.hpp"
#include "sqlite/generations.hpp"
#include "sqlite/pending_batch.hpp"

#include <algorithm>
#include <tuple>

namespace stela::outbox {

using relay::Lease;
using relay::PendingMessage;
using sqlite::Connection;
using sqlite::Query;
using sqlite::Sync;

namespace {

/// What a batch has room for.
class Room {
 public:
  explicit Room(const relay::BatchLimit& limit) : messages_{limit.messages}, bytes_{limit.bytes} {}

  /// How many messages fit, the first of the batch at least, whose sizes `sizes` has: all of its
  /// parameters but the fifth, how many are looked at, are bound.
  std::int64_t count(Query& sizes) {
    sizes.bind(5, messages_);
    std::int64_t count = 0;
    while (sizes.step()) {
      bytes_ -= sizes.integer(0);
      if (bytes_ < 0 && !is_empty_) break;
      is_empty_ = false;
      ++count;
    }
    messages_ -= count;
    return count;
  }

 private:
  std::int64_t messages_;
  std::int64_t bytes_;
  bool is_empty_ = true;
};

}  // namespace

std::chrono::steady_clock::time_point ClaimsStore::steady_now() const {
  return store_.core().options().clock->steady_now();
}

relay::Overview ClaimsStore::look(std::chrono::microseconds lease_ttl,
                                  std::chrono::microseconds heartbeat_ttl) {
  relay::Overview overview = RelayStore::look(lease_ttl, heartbeat_ttl);
  overview.workers.clear();
  for (relay::Overview::Partition& partition : overview.partitions) {
    partition.owner.clear();
    partition.is_free = true;
    partition.is_expired = false;
  }
  return overview;
}

std::int64_t ClaimsStore::live_workers() {
  std::int64_t count = 0;
  store_.core().reading().read([&](Connection& connection) {
    auto row = connection.rows(sql::live_workers{.now = now()});
    row.step();
    count = row.count();
  });
  return count;
}

// --- the claim

std::optional<relay::Standing> ClaimsStore::acquire(PartitionId partition, std::string_view worker,
                                                    std::chrono::microseconds ttl) {
  std::optional<relay::Standing> standing;
  const Timestamp at = now();
  const auto begun = steady_now();
  store_.core().writer().run_statements(
      [&](Connection& connection) {
        Query query = connection.query(sql::begin_claims);
        if (!query.bind(1, std::int64_t{partition.number}).step()) return;
        standing = relay::Standing{.epoch = query.integer(0),
                                   .attempts = static_cast<int>(query.integer(1)),
                                   .backoff_left = time_left(query.time(2), at)};
      },
      Sync::none);
  if (!standing) return standing;
  claim_ = std::string{worker} + '#' + std::to_string(standing->epoch);
  ttl_ = ttl;
  claimed_until_ = begun + ttl;
  return standing;
}

bool ClaimsStore::renew(const Lease&, std::chrono::microseconds ttl) {
  // After a pause some claims may be somebody else's now, and we don't know which.
  const auto begun = steady_now();
  if (begun >= claimed_until_) return false;
  const Timestamp until = now() + ttl;
  store_.core().writer().run_statements(
      [&](Connection& connection) {
        connection.query(sql::renew_claims).bind(1, claim_).bind_time(2, until).run();
        connection.query(sql::renew_claimed_redeliveries).bind(1, claim_).bind_time(2, until).run();
      },
      Sync::none);
  claimed_until_ = begun + ttl;
  return true;
}

void ClaimsStore::release(const Lease&) {
  store_.core().writer().run_statements(
      [&](Connection& connection) {
        connection.query(sql::release_claims).bind(1, claim_).run();
        connection.query(sql::release_claimed_redeliveries).bind(1, claim_).run();
      },
      Sync::none);
}

// --- messages

bool ClaimsStore::can_claim(PartitionId partition) {
  bool can = false;
  const Timestamp at = now();
  store_.core().reading().read([&](Connection& connection) {
    {
      auto row = connection.rows(sql::stopped_by{.partition = partition.number});
      if (!row.step() || row.stopped()) return;
    }
    Query query = connection.query(sql::can_claim);
    query.bind(1, std::int64_t{partition.number})
        .bind_time(2, at)
        .bind_time(3, at + 2 * ttl_)
        .bind(4, claim_)
        .step();
    can = query.integer(0) != 0;
  });
  return can;
}

std::vector<PendingMessage> ClaimsStore::claim(PartitionId partition,
                                               const relay::BatchLimit& limit) {
  std::vector<PendingMessage> claimed;
  const Timestamp at = now();
  const auto of_claimable = [&](Query& query) -> Query& {
    return query.bind(1, std::int64_t{partition.number})
        .bind_time(2, at)
        .bind_time(3, at + 2 * ttl_)
        .bind(4, claim_);
  };
  store_.core().writer().run_statements(
      [&](Connection& connection) {
        Room room{limit};
        Query sizes_again = connection.query(sql::size_claimable_redeliveries);
        std::int64_t most = room.count(of_claimable(sizes_again));
        Query again = connection.query(sql::claim_redeliveries);
        of_claimable(again).bind_time(5, at + ttl_).bind(6, most);
        while (again.step()) {
          claimed.push_back({.sequence = GlobalSequence{again.integer(0)},
                             .stream = again.integer(1),
                             .redelivery = again.integer(3),
                             .attempts = static_cast<int>(again.integer(2)),
                             .is_republished = again.text(4) == "republish",
                             .was_lost = again.integer(5) != 0});
        }
        Query sizes = connection.query(sql::size_claimable_messages);
        most = room.count(of_claimable(sizes));
        Query waiting = connection.query(sql::claim_messages);
        of_claimable(waiting).bind_time(5, at + ttl_).bind(6, most);
        while (waiting.step()) {
          claimed.push_back({.sequence = GlobalSequence{waiting.integer(0)},
                             .stream = waiting.integer(1),
                             .attempts = static_cast<int>(waiting.integer(2)),
                             .backoff_left = time_left(waiting.time(3), at)});
        }
      },
      Sync::none);
  std::sort(claimed.begin(), claimed.end(), [](const auto& a, const auto& b) {
    return std::tuple{a.redelivery == 0, a.redelivery, a.sequence} <
           std::tuple{b.redelivery == 0, b.redelivery, b.sequence};
  });
  return claimed;
}

std::unique_ptr<relay::PendingBatch> ClaimsStore::next(PartitionId partition, const relay::Cursor&,
                                                       const relay::BatchLimit& limit) {
  auto batch = make_batch();
  // Looking is cheap, and an idle outbox isn't written to.
  if (!can_claim(partition)) return batch;
  std::vector<PendingMessage> claimed = claim(partition, limit);
  store_.core().reading().read([&](Connection& connection) {
    batch->take(connection, store_.core().kinds(), std::move(claimed));
  });
  return batch;
}

// --- under the claim

bool ClaimsStore::advance(const Lease& lease, const relay::Advance& advance, bool durable) {
  const Timestamp at = now();
  return write(durable, [&](Connection& connection) {
    apply_claimed(connection, lease.partition, claim_, advance, at);
    return true;
  });
}

bool ClaimsStore::note(const Lease& lease, const relay::Trouble& trouble) {
  const Timestamp at = now();
  return write(false, [&](Connection& connection) {
    connection.query(sql::note_shared_partition)
        .bind(1, std::int64_t{lease.partition.number})
        .bind(2, std::int64_t{trouble.attempts})
        .bind_time(3, end_of(trouble.backoff, at))
        .bind_optional(4, trouble.error)
        .run();
    if (!trouble.message) return true;
    if (trouble.message->redelivery > 0) {
      connection.query(sql::note_claimed_redelivery)
          .bind(1, trouble.message->redelivery)
          .bind(2, std::int64_t{trouble.message_attempts})
          .bind(3, trouble.error)
          .bind(4, claim_)
          .run();
      return true;
    }
    connection.query(sql::note_claimed_message)
        .bind(1, std::int64_t{lease.partition.number})
        .bind(2, trouble.message->sequence.value())
        .bind(3, std::int64_t{trouble.message_attempts})
        .bind_time(4, end_of(trouble.message_backoff, at))
        .bind(5, trouble.error)
        .bind(6, claim_)
        .run();
    return true;
  });
}

bool ClaimsStore::stop(const Lease& lease, std::string_view reason, std::string_view detail) {
  return write(false, [&](Connection& connection) {
    connection.run(
        sql::stop_shared{.partition = lease.partition.number, .reason = reason, .detail = detail});
    return true;
  });
}

}  // namespace stela::outbox

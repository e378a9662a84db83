#include "tables/claims_store.hpp"

#include "database/database.hpp"
#include "follow/lease.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/pending.hpp"
#include "outbox_sql/relay.hpp"
#include "tables/advance.hpp"
#include "tables/backoff.hpp"
#include "tables/generations.hpp"
#include "tables/pending_batch.hpp"

#include <algorithm>
#include <tuple>

namespace stela::outbox {

using database::Connection;
using database::Sync;
using relay::Lease;
using relay::PendingMessage;

namespace {

/// From when on a claim ends absurdly late. Its length isn't in its row, as it is for leases: other
/// relays may have longer claims than this one.
Timestamp absurd_claim(Timestamp now) noexcept {
  return now + 2 * follow::longest_unknown_length;
}

/// What a batch has room for.
class Room {
 public:
  explicit Room(const relay::BatchLimit& limit) : messages_{limit.messages}, bytes_{limit.bytes} {}

  std::int64_t messages() const noexcept { return messages_; }

  /// How many of the messages of these sizes fit, the first of the batch at least.
  std::int64_t count(sql::size_row sizes) {
    std::int64_t count = 0;
    while (sizes.step()) {
      bytes_ -= sizes.size();
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
  return store_.database().clock().steady_now();
}

relay::Overview ClaimsStore::look() {
  relay::Overview overview = RelayStore::look();
  overview.is_shared = true;
  for (relay::Overview::Partition& partition : overview.partitions) {
    partition.owner.clear();
    partition.is_free = true;
    partition.is_expired = false;
  }
  return overview;
}

// --- the claim

std::optional<relay::Standing> ClaimsStore::acquire(PartitionId partition, std::string_view worker,
                                                    std::chrono::microseconds ttl) {
  std::optional<relay::Standing> standing;
  const Timestamp at = now();
  const auto begun = steady_now();
  store_.database().write(
      [&](Connection& connection) {
        auto row = connection.rows(sql::begin_claims{.partition = partition.number});
        if (!row.step()) return;
        standing = relay::Standing{.epoch = row.epoch(),
                                   .run = connection.run(),
                                   .attempts = static_cast<int>(row.attempts()),
                                   .backoff_left = time_left(row.next_attempt_at(), at)};
      },
      Sync::if_shared);
  if (!standing) return standing;
  claim_ = std::string{worker} + '#' + std::to_string(standing->epoch);
  ttl_ = ttl;
  claimed_until_ = begun + ttl;
  return standing;
}

bool ClaimsStore::renew(const Lease& lease, std::chrono::microseconds ttl) {
  // After a pause some claims may be somebody else's now, and we don't know which.
  const auto begun = steady_now();
  if (begun >= claimed_until_) return false;
  const Timestamp until = now() + ttl;
  bool is_held = false;
  store_.database().write(
      [&](Connection& connection) {
        is_held = connection.run() == lease.run;
        if (!is_held) return give_back(connection, lease);
        connection.run(sql::renew_claims{.claim = claim_, .until = until});
        connection.run(sql::renew_claimed_redeliveries{.claim = claim_, .until = until});
      },
      Sync::if_shared);
  if (is_held) claimed_until_ = begun + ttl;
  return is_held;
}

void ClaimsStore::release(const Lease& lease) {
  store_.database().write([&](Connection& connection) { give_back(connection, lease); },
                          Sync::none);
}

void ClaimsStore::give_back(Connection& connection, const Lease&) {
  connection.run(sql::release_claims{.claim = claim_});
  connection.run(sql::release_claimed_redeliveries{.claim = claim_});
}

// --- messages

bool ClaimsStore::can_claim(PartitionId partition) {
  bool can = false;
  const Timestamp at = now();
  store_.database().read([&](Connection& connection) {
    {
      auto row = connection.rows(sql::stopped_by{.partition = partition.number});
      if (!row.step() || row.stopped()) return;
    }
    auto row = connection.rows(sql::can_claim{
        .partition = partition.number, .now = at, .absurd = absurd_claim(at), .claim = claim_});
    row.step();
    can = row.can_claim();
  });
  return can;
}

std::vector<PendingMessage> ClaimsStore::claim(PartitionId partition,
                                               const relay::BatchLimit& limit) {
  std::vector<PendingMessage> claimed;
  const Timestamp at = now();
  const Timestamp absurd = absurd_claim(at);
  store_.database().write(
      [&](Connection& connection) {
        Room room{limit};
        const std::int64_t redeliveries = room.count(
            connection.rows(sql::size_claimable_redeliveries{.partition = partition.number,
                                                             .now = at,
                                                             .absurd = absurd,
                                                             .claim = claim_,
                                                             .limit = room.messages()}));
        auto again = connection.rows(sql::claim_redeliveries{.partition = partition.number,
                                                             .now = at,
                                                             .absurd = absurd,
                                                             .claim = claim_,
                                                             .until = at + ttl_,
                                                             .limit = redeliveries});
        while (again.step()) {
          claimed.push_back({.sequence = GlobalSequence{again.sequence()},
                             .stream = again.stream(),
                             .redelivery = again.redelivery(),
                             .attempts = static_cast<int>(again.attempts()),
                             .is_republished = again.kind() == "republish",
                             .was_lost = again.was_lost()});
        }
        const std::int64_t messages =
            room.count(connection.rows(sql::size_claimable_messages{.partition = partition.number,
                                                                    .now = at,
                                                                    .absurd = absurd,
                                                                    .claim = claim_,
                                                                    .limit = room.messages()}));
        auto waiting = connection.rows(sql::claim_messages{.partition = partition.number,
                                                           .now = at,
                                                           .absurd = absurd,
                                                           .claim = claim_,
                                                           .until = at + ttl_,
                                                           .limit = messages});
        while (waiting.step()) claimed.push_back(to_message(waiting, at));
      },
      Sync::if_shared);
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
  store_.database().read(
      [&](Connection& connection) { batch->take(connection, std::move(claimed)); });
  return batch;
}

// --- under the claim

bool ClaimsStore::advance(const Lease& lease, const relay::Advance& advance, bool durable) {
  const Timestamp at = now();
  return write(lease, durable, [&](Connection& connection) {
    apply_claimed(connection, lease.partition, claim_, advance, at);
    return true;
  });
}

bool ClaimsStore::note(const Lease& lease, const relay::Trouble& trouble) {
  const Timestamp at = now();
  return write(lease, false, [&](Connection& connection) {
    connection.run(sql::note_shared_partition{.partition = lease.partition.number,
                                              .attempts = trouble.attempts,
                                              .next_attempt_at = end_of(trouble.backoff, at),
                                              .error = database::or_null(trouble.error)});
    if (!trouble.message) return true;
    if (trouble.message->redelivery > 0) {
      connection.run(sql::note_claimed_redelivery{.redelivery = trouble.message->redelivery,
                                                  .attempts = trouble.message_attempts,
                                                  .error = trouble.error,
                                                  .claim = claim_});
      return true;
    }
    connection.run(sql::note_claimed_message{.partition = lease.partition.number,
                                             .sequence = trouble.message->sequence.value(),
                                             .attempts = trouble.message_attempts,
                                             .next_attempt_at = end_of(trouble.message_backoff, at),
                                             .error = trouble.error,
                                             .claim = claim_});
    return true;
  });
}

bool ClaimsStore::stop(const Lease& lease, StopReason reason, std::string_view detail) {
  return write(lease, false, [&](Connection& connection) {
    connection.run(sql::stop_shared{
        .partition = lease.partition.number, .reason = to_string(reason), .detail = detail});
    return true;
  });
}

}  // namespace stela::outbox

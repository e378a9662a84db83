// What the relay changes in a partition, under its lease.
#include "database/database.hpp"
#include "database/journal.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/relay.hpp"
#include "tables/advance.hpp"
#include "tables/relay_store.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace stela::outbox {

using database::Connection;
using relay::Lease;

namespace {

/// Zero, which is always past, if there is no wait.
Timestamp end_of(std::chrono::microseconds wait, Timestamp now) {
  return wait.count() > 0 ? now + wait : Timestamp{};
}

}  // namespace

void note_stop(Connection& connection, Timestamp at, PartitionId partition, StopReason reason,
               std::string_view detail) {
  std::string why{to_string(reason)};
  why.append(": ").append(detail);
  database::note(
      connection, at,
      {.part = "outbox", .subject = partition.label(), .what = "stopped", .detail = why});
}

bool RelayStore::advance(const Lease& lease, const relay::Advance& advance, bool durable) {
  const Timestamp at = now();
  return write(lease, durable,
               [&](Connection& connection) { return apply(connection, lease, advance, at); });
}

bool RelayStore::note(const Lease& lease, const relay::Trouble& trouble) {
  const Timestamp at = now();
  std::optional<std::string_view> failure_class;
  if (trouble.failure) failure_class = to_string(*trouble.failure);
  return write(lease, false, [&](Connection& connection) {
    const bool is_ours =
        connection.run(sql::note_partition{.partition = lease.partition.number,
                                           .owner = lease.owner,
                                           .epoch = lease.epoch,
                                           .attempts = trouble.attempts,
                                           .next_attempt_at = end_of(trouble.backoff, at),
                                           .error = database::or_null(trouble.error),
                                           .failure_class = failure_class,
                                           .now = at}) == 1;
    if (!is_ours) return false;
    if (!trouble.message) return true;
    if (trouble.message->redelivery > 0) {
      connection.run(sql::note_redelivery{.redelivery = trouble.message->redelivery,
                                          .attempts = trouble.message_attempts,
                                          .error = trouble.error});
      return true;
    }
    connection.run(sql::note_message{.partition = lease.partition.number,
                                     .sequence = trouble.message->sequence.value(),
                                     .attempts = trouble.message_attempts,
                                     .error = trouble.error});
    return true;
  });
}

bool RelayStore::stop(const Lease& lease, StopReason reason, std::string_view detail) {
  const Timestamp at = now();
  return write(lease, false, [&](Connection& connection) {
    if (connection.run(sql::stop{.partition = lease.partition.number,
                                 .owner = lease.owner,
                                 .epoch = lease.epoch,
                                 .reason = to_string(reason),
                                 .detail = detail,
                                 .now = at}) != 1) {
      return false;
    }
    note_stop(connection, at, lease.partition, reason, detail);
    return true;
  });
}

bool RelayStore::continue_lost(const Lease& lease) {
  const Timestamp at = now();
  return write(lease, false, [&](Connection& connection) {
    if (connection.run(sql::continue_lost{
            .partition = lease.partition.number, .owner = lease.owner, .epoch = lease.epoch}) !=
        1) {
      return false;
    }
    database::note(connection, at,
                   database::StateChange{.part = "outbox",
                                         .subject = lease.partition.label(),
                                         .what = "resumed",
                                         .detail = "the broker has its messages again"});
    return true;
  });
}

}  // namespace stela::outbox

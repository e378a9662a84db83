// How operators discard messages.
#include "database/database.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/operations.hpp"
#include "outbox_sql/partitions.hpp"
#include "outbox_sql/pending.hpp"
#include "outbox_sql/states.hpp"
#include "tables/generations.hpp"
#include "tables/stored_operations.hpp"

#include <set>
#include <utility>
#include <vector>

namespace stela::outbox {

using database::Connection;

namespace {

void remove_waiting(Connection& connection, std::int64_t partition, GlobalSequence sequence) {
  connection.run(sql::delete_messages{
      .partition = partition, .first = sequence.value(), .last = sequence.value()});
  connection.run(sql::count_removed{.partition = partition});
}

bool is_stopped(Connection& connection, std::int64_t partition) {
  auto row = connection.rows(sql::stopped_by{.partition = partition});
  return row.step() && row.stopped();
}

void note_discarded_poison(Connection& connection, std::int64_t partition,
                           GlobalSequence sequence) {
  const std::string event = "event " + std::to_string(sequence.value());
  connection.run(sql::note_discarded_poison{.partition = partition,
                                            .stands = event + " can't be published",
                                            .gone = event + " is discarded"});
}

/// "4 messages, 41, 43 to 45": lists every message, because they are gone for good.
std::string each_in_words(std::span<const std::int64_t> sequences) {
  std::string text = std::to_string(sequences.size());
  text += sequences.size() == 1 ? " message" : " messages";
  for (std::size_t first = 0; first < sequences.size();) {
    std::size_t last = first;
    while (last + 1 < sequences.size() && sequences[last + 1] == sequences[last] + 1) ++last;
    text += ", " + std::to_string(sequences[first]);
    if (last > first) text += " to " + std::to_string(sequences[last]);
    first = last + 1;
  }
  return text;
}

/// The last of at most `most` messages that are parked in the stream after `gone` and only because
/// of it; 0 if there is none, or if an earlier message is parked.
GlobalSequence last_follower(Connection& connection, std::int64_t stream, GlobalSequence gone,
                             std::int64_t most) {
  {
    auto before =
        connection.rows(sql::is_parked_stream{.stream = stream, .before = gone.value() + 1});
    before.step();
    if (before.is_parked()) return {};
  }
  GlobalSequence last;
  auto rows =
      connection.rows(sql::parked_after{.stream = stream, .after = gone.value(), .most = most});
  while (rows.step() && rows.reason() == to_string(SetAsideReason::behind)) {
    last = GlobalSequence{rows.sequence()};
  }
  return last;
}

}  // namespace

bool StoredOperations::discard(GlobalSequence sequence, std::string_view who) {
  PlannedDiscard planned{.sequence = sequence};
  store_.database().read([&](Connection& connection) {
    auto row = connection.rows(sql::find_parked{.sequence = sequence.value()});
    if (row.step()) planned.parked_at = row.since();
  });
  return discard({&planned, 1}, who).messages == 1;
}

GivenUp StoredOperations::discard(std::span<const PlannedDiscard> planned, std::string_view who) {
  std::vector<std::int64_t> gone;
  std::set<std::int64_t> streams;
  ByStream parked;
  std::int64_t sent = 0;
  write([&](Connection& connection) {
    gone.clear();
    streams.clear();
    parked.clear();
    for (const PlannedDiscard& each : planned) {
      auto stream = discard_parked(connection, each);
      if (stream) {
        parked[*stream].push_back(each.sequence);
      } else if (!each.parked_at) {
        stream = discard_stopped(connection, each.sequence);
      }
      if (!stream) continue;
      streams.insert(*stream);
      gone.push_back(each.sequence.value());
    }
    if (!gone.empty()) {
      note(connection, who, "discard", each_in_words(gone), std::ssize(gone));
    }
    sent = send_followers(connection, parked, who);
  });
  return {.messages = static_cast<std::int64_t>(gone.size()),
          .followers = sent + send_more_followers(parked, sent, who),
          .streams = std::move(streams)};
}

/// Resends messages of these streams that no longer wait for anything. Returns how many.
std::int64_t StoredOperations::send_followers(Connection& connection, const ByStream& gone,
                                              std::string_view who) {
  std::int64_t sent = 0;
  for (const auto& [stream, sequences] : gone) {
    const GlobalSequence last =
        last_follower(connection, stream, sequences.front(), step_messages - sent);
    // If many redeliveries come later, the relay sends the followers once it has parked those.
    if (last == GlobalSequence{} || has_many_later(connection, stream)) continue;
    Placement placement{connection, store_.database(), partitioner_};
    placement.require_partitioner();
    sent += retry_one(connection, placement, {stream, last}, who).joined;
  }
  return sent;
}

/// Continues in further transactions if the first one reached its limit.
std::int64_t StoredOperations::send_more_followers(const ByStream& gone, std::int64_t sent,
                                                   std::string_view who) {
  std::int64_t more = 0;
  while (sent == step_messages) {
    write([&](Connection& connection) { sent = send_followers(connection, gone, who); });
    more += sent;
  }
  return more;
}

void StoredOperations::keep_discarded(Connection& connection, const Discarded& discarded) {
  connection.run(sql::insert_discarded{.sequence = discarded.sequence.value(),
                                       .stream = discarded.stream,
                                       .partition = discarded.partition,
                                       .now = store_.database().now(),
                                       .attempts = discarded.attempts,
                                       .reason = to_string(SetAsideReason::discarded),
                                       .error = discarded.error,
                                       .failure_class = discarded.failure_class});
}

std::optional<std::int64_t> StoredOperations::discard_parked(Connection& connection,
                                                             const PlannedDiscard& planned) {
  Discarded discarded{.sequence = planned.sequence};
  {
    auto row = connection.rows(sql::find_parked{.sequence = planned.sequence.value()});
    if (!row.step() || row.since() != planned.parked_at) return std::nullopt;
    discarded.stream = row.stream();
    discarded.partition = row.partition();
    discarded.attempts = row.attempts();
    discarded.error = row.error();
    discarded.failure_class = row.failure_class();
  }
  connection.run(sql::delete_parked{.sequence = planned.sequence.value()});
  keep_discarded(connection, discarded);
  return discarded.stream;
}

std::optional<std::int64_t> StoredOperations::discard_stopped(Connection& connection,
                                                              GlobalSequence sequence) {
  Discarded discarded{.sequence = sequence};
  {
    auto row = connection.rows(sql::find_waiting{.sequence = sequence.value()});
    if (row.step()) {
      discarded.stream = row.stream();
      discarded.partition = row.partition();
      discarded.attempts = row.attempts();
      discarded.error = row.last_error();
    }
  }
  if (discarded.stream != 0) {
    if (!is_stopped(connection, discarded.partition)) return std::nullopt;
    note_discarded_poison(connection, discarded.partition, sequence);
    remove_waiting(connection, discarded.partition, sequence);
    keep_discarded(connection, discarded);
    return discarded.stream;
  }
  return discard_redeliveries(connection, discarded);
}

std::optional<std::int64_t> StoredOperations::discard_redeliveries(Connection& connection,
                                                                   Discarded discarded) {
  {
    auto event = connection.rows(sql::find_event{.sequence = discarded.sequence.value()});
    if (!event.step()) return std::nullopt;
    discarded.stream = event.stream();
  }
  std::vector<std::int64_t> redeliveries;
  bool never_published = false;
  {
    auto row = connection.rows(
        sql::find_redelivery{.stream = discarded.stream, .sequence = discarded.sequence.value()});
    while (row.step()) {
      redeliveries.push_back(row.redelivery());
      never_published = never_published || row.kind() == "retry";
      discarded.partition = row.partition();
      discarded.attempts = row.attempts();
      discarded.error = row.last_error();
    }
  }
  if (redeliveries.empty() || !is_stopped(connection, discarded.partition)) return std::nullopt;
  note_discarded_poison(connection, discarded.partition, discarded.sequence);
  for (const std::int64_t redelivery : redeliveries) {
    connection.run(sql::delete_redelivery{.redelivery = redelivery});
  }
  if (never_published) keep_discarded(connection, discarded);
  return discarded.stream;
}

}  // namespace stela::outbox

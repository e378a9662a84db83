#include "tables/advance.hpp"

#include "outbox_sql/failures.hpp"
#include "outbox_sql/messages.hpp"
#include "outbox_sql/operations.hpp"
#include "outbox_sql/pending.hpp"
#include "outbox_sql/relay.hpp"
#include "outbox_sql/states.hpp"
#include "tables/failure_group.hpp"
#include "tables/generations.hpp"
#include "tables/stored_operations.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace stela::outbox {

using database::Connection;
using relay::ParkedMessage;
using relay::PublishedRun;

namespace {

/// Applies one advance, step by step. The partition's row counts removed and published messages.
class Application {
 public:
  Application(Connection& connection, PartitionId partition, Timestamp now) noexcept
      : connection_{connection}, partition_{partition.number}, now_{now} {}

  void apply(const relay::Advance& advance) {
    for (const PublishedRun& run : advance.published) publish(run);
    for (const ParkedMessage& message : advance.parked) park(message);
    for (const ParkedMessage& message : advance.skipped) skip(message);
  }

  void publish(const PublishedRun& run) {
    if (run.redelivery > 0) {
      const auto taken = take_redelivery(run.redelivery);
      if (taken && taken->is_retry) {
        ++published_;
        send_followers(taken->stream);
      }
    } else {
      const std::int64_t removed = remove_messages(run.first, run.last);
      published_ += removed;
      // It was parked, but had reached the broker.
      if (removed == 0) published_ += take_parked(run.first) + remove_lost(run.first);
      through_ = std::max(through_, run.last.value());
    }
    connection_.run(sql::insert_batch{.partition = partition_,
                                      .last_sequence = run.last.value(),
                                      .redelivery = run.redelivery,
                                      .first_sequence = run.first.value(),
                                      .count = run.count,
                                      .now = now_,
                                      .first_broker = static_cast<std::int64_t>(run.first_broker),
                                      .last_broker = static_cast<std::int64_t>(run.last_broker)});
  }

  void park(const ParkedMessage& message) {
    const auto taken = take(message);
    if (!taken) return;
    const bool is_behind = message.reason == ParkedMessage::Reason::behind;
    if (is_behind && !is_behind_parked(taken->stream, message.sequence)) {
      // An operator has resent the stream's messages meanwhile, and this one follows them.
      send_again({message.sequence, partition_, *taken});
      return;
    }
    std::string failure;
    std::optional<std::string_view> failure_class;
    if (!is_behind) {
      const std::string_view reason = to_string(message.reason);
      failure_class = to_string(message.failure.value_or(FailureClass::other));
      // Errors about size vary by unit and by setting, so group them by class.
      const bool is_too_large = message.failure == FailureClass::too_large;
      failure = failure_of(reason, type_of(message.sequence),
                           is_too_large ? *failure_class : std::string_view{message.error});
    }
    connection_.run(sql::insert_parked{.stream = taken->stream,
                                       .sequence = message.sequence.value(),
                                       .partition = partition_,
                                       .now = now_,
                                       .attempts = message.attempts,
                                       .reason = to_string(message.reason),
                                       .error = message.error,
                                       .was_lost = taken->was_lost,
                                       .failure = database::or_null(failure),
                                       .failure_class = failure_class});
    if (is_behind) send_followers(taken->stream);
  }

  void skip(const ParkedMessage& message) {
    const auto taken = take(message);
    if (!taken || !taken->is_retry) return;
    connection_.run(sql::insert_discarded{
        .sequence = message.sequence.value(),
        .stream = taken->stream,
        .partition = partition_,
        .now = now_,
        .attempts = message.attempts,
        .reason = to_string(SetAsideReason::skipped),
        .error = message.error,
        .failure_class = to_string(message.failure.value_or(FailureClass::other))});
    send_followers(taken->stream);
  }

  std::int64_t removed() const noexcept { return removed_; }
  std::int64_t published() const noexcept { return published_; }
  std::int64_t through() const noexcept { return through_; }

 private:
  std::string type_of(GlobalSequence sequence) {
    auto row = connection_.rows(sql::type_of_event{.sequence = sequence.value()});
    return row.step() ? std::string{row.type()} : std::string{};
  }

  /// Facts about a message that are known only while it is pending.
  struct Taken {
    std::int64_t stream = 0;
    bool was_lost = false;
    /// False for a republication: the event still counts as published.
    bool is_retry = true;
  };
  /// A message to be sent again from a partition.
  struct Waiting {
    GlobalSequence sequence = {};
    std::int64_t partition = 0;
    Taken taken = {};
  };

  std::int64_t remove_messages(GlobalSequence first, GlobalSequence last) {
    const std::int64_t removed = connection_.run(sql::delete_messages{
        .partition = partition_, .first = first.value(), .last = last.value()});
    removed_ += removed;
    return removed;
  }

  /// Returns 1 if it was parked. Sends messages that were parked only because of it.
  std::int64_t take_parked(GlobalSequence sequence) {
    std::int64_t stream = 0;
    {
      auto row = connection_.rows(sql::find_parked{.sequence = sequence.value()});
      if (!row.step()) return 0;
      stream = row.stream();
    }
    connection_.run(sql::delete_parked{.sequence = sequence.value()});
    send_followers(stream);
    return 1;
  }

  /// Resends messages parked behind nothing, in bounded steps: the last message of each step
  /// triggers the next one. Pending redeliveries come first, because the relay parks them if they
  /// must wait.
  void send_followers(std::int64_t stream) {
    if (!has_orphan(stream)) return;
    std::vector<Waiting> followers;
    {
      const std::int64_t most = std::max<std::int64_t>(room_, 1);
      auto rows = connection_.rows(sql::parked_after{.stream = stream, .after = 0, .most = most});
      while (rows.step() && rows.reason() == to_string(SetAsideReason::behind)) {
        followers.push_back(
            {GlobalSequence{rows.sequence()}, rows.partition(), Taken{stream, rows.was_lost()}});
      }
    }
    room_ -= std::ssize(followers);
    for (const Waiting& follower : followers) {
      connection_.run(sql::delete_parked{.sequence = follower.sequence.value()});
      send_again(follower);
    }
  }

  /// Whether the stream's first parked message waits for no other.
  bool has_orphan(std::int64_t stream) {
    {
      auto first = connection_.rows(sql::parked_after{.stream = stream, .after = 0, .most = 1});
      if (!first.step() || first.reason() != to_string(SetAsideReason::behind)) return false;
    }
    auto again = connection_.rows(sql::has_redeliveries{.stream = stream, .first = 0, .most = 0});
    return again.step() && !again.has_more();
  }

  std::int64_t remove_lost(GlobalSequence sequence) {
    return connection_.run(
        sql::delete_found_loss{.partition = partition_, .sequence = sequence.value()});
  }

  /// Unset if it no longer exists.
  std::optional<Taken> take_redelivery(std::int64_t redelivery) {
    std::optional<Taken> taken;
    {
      auto row = connection_.rows(sql::redelivery_stream{.redelivery = redelivery});
      if (!row.step()) return taken;
      taken = {row.stream(), row.was_lost(), row.kind() == "retry"};
    }
    connection_.run(sql::delete_redelivery{.redelivery = redelivery});
    return taken;
  }

  /// Removes a pending message; unset if it no longer exists.
  std::optional<Taken> take(const ParkedMessage& message) {
    if (message.redelivery > 0) return take_redelivery(message.redelivery);
    std::optional<Taken> taken;
    {
      auto row = connection_.rows(
          sql::message_stream{.partition = partition_, .sequence = message.sequence.value()});
      if (row.step()) taken = {.stream = row.stream()};
    }
    remove_messages(message.sequence, message.sequence);
    return taken;
  }

  bool is_behind_parked(std::int64_t stream, GlobalSequence sequence) {
    auto row =
        connection_.rows(sql::is_parked_stream{.stream = stream, .before = sequence.value()});
    row.step();
    return row.is_parked();
  }

  void send_again(const Waiting& waiting) {
    // Keep the event's generation, so that later generations wait until it is published.
    const Generation generation = generation_of(connection_, waiting.sequence);
    connection_.run(sql::insert_redelivery{.partition = waiting.partition,
                                           .generation = generation.number,
                                           .sequence = waiting.sequence.value(),
                                           .stream = waiting.taken.stream,
                                           .kind = "retry",
                                           .now = now_,
                                           .was_lost = waiting.taken.was_lost});
  }

  Connection& connection_;
  std::int64_t partition_;
  Timestamp now_;
  std::int64_t removed_ = 0;
  std::int64_t published_ = 0;
  std::int64_t through_ = 0;
  /// How many more messages this transaction may resend.
  std::int64_t room_ = step_messages;
};

/// Given-up messages have failed; messages parked behind them haven't been tried.
std::int64_t failed_in(const relay::Advance& advance) {
  const auto tried = [](const relay::ParkedMessage& one) {
    return one.reason != relay::ParkedMessage::Reason::behind;
  };
  return std::count_if(advance.parked.begin(), advance.parked.end(), tried) +
         std::count_if(advance.skipped.begin(), advance.skipped.end(), tried);
}

}  // namespace

bool apply(Connection& connection, const relay::Lease& lease, const relay::Advance& advance,
           Timestamp now) {
  Application application{connection, lease.partition, now};
  application.apply(advance);

  std::optional<std::int64_t> broker_sequence;
  std::optional<std::string_view> broker_id;
  if (advance.broker_sequence) {
    broker_sequence = static_cast<std::int64_t>(*advance.broker_sequence);
    broker_id = advance.broker_id;
  }
  return connection.run(sql::advance{.partition = lease.partition.number,
                                     .owner = lease.owner,
                                     .epoch = lease.epoch,
                                     .through = application.through(),
                                     .broker_sequence = broker_sequence,
                                     .broker_id = broker_id,
                                     .flight_count = advance.flight_count,
                                     .flight_through = advance.flight_through.value(),
                                     .removed = application.removed(),
                                     .published = application.published(),
                                     .failed = failed_in(advance),
                                     .now = now}) == 1;
}

}  // namespace stela::outbox

#include "reader_store.hpp"

#include "database/host.hpp"
#include "database/journal.hpp"
#include "inbox_sql.hpp"
#include "inbox_sql/consumers.hpp"
#include "inbox_sql/gaps.hpp"
#include "inbox_sql/parked.hpp"
#include "inbox_sql/positions.hpp"
#include "inbox_sql/readers.hpp"

#include <stela/framework/error.hpp>
#include <stela/nats/inbox.hpp>

#include <algorithm>
#include <utility>

namespace stela::nats {

namespace sql = inbox::sql;
using database::Sync;

namespace {

std::string_view bytes_of(const Uuid& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes().data()), id.bytes().size()};
}

std::int64_t number(std::uint64_t place) noexcept {
  return static_cast<std::int64_t>(place);
}

template <class T>
std::optional<std::string> text_or_none(const T& text) {
  if (!text) return {};
  return std::string{*text};
}

}  // namespace

void migrate_inbox(Store& store) {
  store.database().migrate("inbox", sql::migrations, sql::migrations_on_postgres);
}

ReaderStore::ReaderStore(Store& store, const ConsumerOptions& options)
    : store_{store.anchor()},
      options_{options},
      worker_{host::make_worker_name()},
      sign_{store_, "consumer.trouble", worker_},
      renewal_{options.lease_ttl} {
  migrate_inbox(store);
  store_.database().write([&](database::Connection& connection) {
    connection.run(sql::insert_consumer{.name = options.name, .created_at = now()});
    auto found = connection.rows(sql::find_consumer{.name = options.name});
    found.step();
    consumer_ = found.consumer();
    found.run();
    const std::string& filter = options.filter_subject;
    connection.run(sql::insert_reader{
        .consumer = consumer_, .broker_stream = options.stream, .filter = filter, .now = now()});
    connection.run(
        sql::set_filter{.consumer = consumer_, .broker_stream = options.stream, .filter = filter});
  });
  look();
  if (standing_.filter == options.filter_subject) return;
  throw UsageError{
      "the consumer '" + options.name + "' reads the stream '" + options.stream +
      "' with the filter_subject '" + standing_.filter + "', not '" + options.filter_subject +
      "': what the filter left out would be missing; give this one another name, or 'stela inbox "
      "forget' the stream to begin anew"};
}

// --- the lease

void ReaderStore::look() {
  Standing found;
  store_.database().read([&](database::Connection& connection) {
    auto row =
        connection.rows(sql::find_reader{.consumer = consumer_, .broker_stream = options_.stream});
    if (!row.step()) {
      throw UsageError{"the inbox has lost the consumer '" + options_.name + "'; start it again"};
    }
    found = {
        .filter = std::string{row.filter()},
        .stream_made_at = row.stream_made_at(),
        .position = static_cast<std::uint64_t>(row.position()),
        .position_time = row.position_time(),
        .began_after = static_cast<std::uint64_t>(row.began_after()),
        .known_through = static_cast<std::uint64_t>(row.known_through()),
        .epoch = row.epoch(),
        .owner = text_or_none(row.owner()).value_or(""),
        .lease = {row.lease_until(), std::chrono::microseconds{row.lease_ttl()}, row.presence()},
        .failing = {row.failing(), static_cast<int>(row.attempts()), row.next_attempt_at(),
                    std::string{row.error()}},
        .unknown_since = row.unknown_since(),
        .is_paused = row.paused(),
        .consumer_made_at = row.created_at()};
  });
  is_held_ = is_held_ && found.epoch == standing_.epoch && found.owner == worker_;
  standing_ = std::move(found);
  const Timestamp at = now();
  if (!is_held_ || !renewal_.is_due(at)) return;
  sign_.show();
  store_.database().write_along(
      [&](database::Connection& connection) {
        is_held_ = renew(connection);
        if (is_held_) sample(connection, at);
      },
      Sync::none);
  if (is_held_) renewal_.note(at);
}

/// Called often; samples once a minute, for the history.
void ReaderStore::sample(database::Connection& connection, Timestamp at) {
  if (std::exchange(sampled_minute_, database::minute_of(at)) == database::minute_of(at)) return;
  const database::Sample position{options_.name + " of " + options_.stream + ".position_total",
                                  number(standing_.position)};
  database::sample(connection, at, {&position, 1});
}

bool ReaderStore::is_free() const {
  return standing_.owner == worker_ ||
         follow::is_free(standing_.owner, standing_.lease, now(), store_.database());
}

bool ReaderStore::acquire() {
  sign_.show();
  const follow::Term mine{worker_, options_.lease_ttl, now(), sign_.number()};
  bool acquired = false;
  store_.database().write_along(
      [&](database::Connection& connection) {
        acquired = connection.run(sql::acquire_reader{.consumer = consumer_,
                                                      .broker_stream = options_.stream,
                                                      .found_epoch = standing_.epoch,
                                                      .found_until = standing_.lease.until,
                                                      .owner = mine.owner,
                                                      .until = mine.until(),
                                                      .ttl = mine.length.count(),
                                                      .presence = mine.presence}) == 1;
        if (!acquired || standing_.owner.empty() || standing_.owner == worker_) return;
        const std::string subject = options_.name + " of " + options_.stream;
        database::note(
            connection, mine.now,
            database::Takeover{
                .part = "inbox", .subject = subject, .from = standing_.owner, .to = worker_});
      },
      Sync::if_shared);
  if (!acquired) return false;
  is_unclean_ = !standing_.owner.empty();
  ++standing_.epoch;
  standing_.owner = worker_;
  is_held_ = true;
  renewal_.note(mine.now);
  // The previous holder may have advanced until it lost the lease.
  look();
  return is_held_;
}

void ReaderStore::release() noexcept try {
  if (!is_held_) return;
  is_held_ = false;
  store_.database().write_along(
      [&](database::Connection& connection) {
        connection.run(sql::release_reader{.consumer = consumer_,
                                           .broker_stream = options_.stream,
                                           .epoch = standing_.epoch,
                                           .now = now()});
      },
      Sync::none);
} catch (const Error&) {
  // The lease runs out by itself.
}

bool ReaderStore::renew(database::Connection& connection) const {
  return connection.run(sql::hold_reader{.consumer = consumer_,
                                         .broker_stream = options_.stream,
                                         .epoch = standing_.epoch,
                                         .position = number(standing_.position),
                                         .until = lease_until()}) == 1;
}

void ReaderStore::hold(database::Connection& connection) const {
  if (!renew(connection)) throw LeaseLost{};
}

void ReaderStore::write(database::Database::Work work) {
  store_.database().write(
      [&](database::Connection& connection) {
        hold(connection);
        work(connection);
      },
      Sync::if_shared);
}

// --- the place in the stream

void ReaderStore::place(database::Connection& connection, Standing next) {
  if (connection.run(sql::place_reader{.consumer = consumer_,
                                       .broker_stream = options_.stream,
                                       .epoch = standing_.epoch,
                                       .until = lease_until(),
                                       .stream_made_at = next.stream_made_at,
                                       .position = number(next.position),
                                       .position_time = next.position_time,
                                       .began_after = number(next.began_after),
                                       .known_through = number(next.known_through)}) != 1) {
    throw LeaseLost{};
  }
  next.failing = {};
  next.unknown_since.reset();
  placed_ = std::move(next);
}

void ReaderStore::confirm() {
  standing_ = placed_;
}

void ReaderStore::begin(const StreamEnds& ends, const BrokerPlace& behind,
                        std::uint64_t known_through) {
  Standing begun = standing_;
  begun.stream_made_at = ends.made_at;
  begun.position = begun.began_after = behind.sequence;
  begun.position_time = behind.time;
  begun.known_through = known_through;
  write([&](database::Connection& connection) {
    place(connection, begun);
    connection.run(sql::delete_sources{.consumer = consumer_, .broker_stream = options_.stream});
  });
  confirm();
}

void ReaderStore::stand_in(const StreamEnds& ends) {
  // A server may report another creation time for an edited stream.
  if (standing_.stream_made_at != ends.made_at) {
    Standing known = standing_;
    known.stream_made_at = ends.made_at;
    write([&](database::Connection& connection) { place(connection, known); });
    confirm();
  }
  has_beginning_ = ends.first <= 1 && standing_.began_after == 0;
}

void ReaderStore::note(const follow::Failing& failing, std::optional<Timestamp> unknown_since,
                       std::int64_t waits_at) {
  write([&](database::Connection& connection) {
    connection.run(sql::note_reader{.consumer = consumer_,
                                    .broker_stream = options_.stream,
                                    .failing = failing.at,
                                    .attempts = failing.attempts,
                                    .next_attempt_at = failing.next_attempt_at,
                                    .error = failing.error,
                                    .unknown_since = unknown_since,
                                    .waits_at = waits_at,
                                    .now = now()});
  });
  standing_.failing = failing;
  standing_.unknown_since = unknown_since;
}

bool ReaderStore::note_standstill(std::int64_t waits_at, const std::string& why) {
  follow::Failing failing = standing_.failing;
  if (why == failing.error) return false;
  const bool is_news = std::exchange(failing.error, why).empty();
  note(failing, standing_.unknown_since, waits_at);
  return is_news;
}

// --- messages

void ReaderStore::open(database::Connection& connection) {
  hold(connection);
  is_locked_ = false;
  met_.clear();
  highest_.clear();
}

ReaderStore::Met ReaderStore::find(database::Connection& connection,
                                   const ReceivedEvent& event) const {
  auto found = connection.rows(sql::find_position{
      .consumer = consumer_, .source = event.store_id, .stream = event.stream.name()});
  found.step();
  return {.version = found.version(),
          .event_id = text_or_none(found.event_id()),
          .recorded_at = found.recorded_at(),
          .is_parked = found.parked()};
}

ReaderStore::Met& ReaderStore::met(database::Connection& connection, const ReceivedEvent& event) {
  const auto [at, is_new] = met_.try_emplace({event.store_id, event.stream.name()});
  if (is_new) at->second = find(connection, event);
  return at->second;
}

bool ReaderStore::is_missed(database::Connection& connection, const ReceivedEvent& event) const {
  return connection
      .rows(sql::find_gap{.consumer = consumer_,
                          .source = event.store_id,
                          .stream = event.stream.name(),
                          .version = event.version.value()})
      .step();
}

std::int64_t ReaderStore::highest_of(database::Connection& connection,
                                     const std::string& store_id) const {
  auto found = connection.rows(sql::find_source{
      .consumer = consumer_, .broker_stream = options_.stream, .source = store_id});
  return found.step() ? found.sequence() : 0;
}

std::int64_t ReaderStore::highest_of(const std::string& store_id) const {
  std::int64_t highest = 0;
  store_.database().read(
      [&](database::Connection& connection) { highest = highest_of(connection, store_id); });
  return highest;
}

/// Judges an event whose version was met before. Only the last id of a stream is known, but a
/// relay's first publications have rising sequences.
bool ReaderStore::is_another_history(database::Connection& connection, const Delivery& delivery,
                                     const Met& last) const {
  const ReceivedEvent& event = *delivery.event;
  if (event.version.value() == last.version) {
    return last.event_id && *last.event_id != bytes_of(event.id);
  }
  const bool may_be_copy = !event.is_fenced || event.redelivery > 0 ||
                           delivery.place.sequence <= standing_.known_through;
  if (may_be_copy) return false;
  if (last.recorded_at && event.recorded_at > *last.recorded_at) return true;
  return event.sequence.value() <= highest_of(connection, event.store_id);
}

Arrival ReaderStore::look(database::OpenTransaction& open, const Delivery& delivery) {
  database::Connection& connection = open.connection();
  const ReceivedEvent& event = *delivery.event;
  if (event.is_fenced && event.redelivery == 0) {
    std::int64_t& highest = highest_[event.store_id];
    highest = std::max(highest, event.sequence.value());
  }
  Met& last = met(connection, event);
  if (last.is_parked && !std::exchange(is_locked_, true)) {
    // Lock, so that parked messages aren't removed between this look and its consequences.
    open.lock();
    last.is_parked = find(connection, event).is_parked;
  }
  if (event.version.value() <= last.version && !is_missed(connection, event)) {
    return is_another_history(connection, delivery, last) ? Arrival::another_history
                                                          : Arrival::copy;
  }
  return last.is_parked ? Arrival::behind_parked : Arrival::next;
}

bool ReaderStore::meet(database::Connection& connection, const ReceivedEvent& event) {
  Met& last = met(connection, event);
  const std::int64_t version = event.version.value();
  if (version <= last.version) {
    split_gaps(connection, event);
    return false;
  }
  // With a filter some messages never arrive, and others may have preceded the first one.
  const bool can_miss = options_.filter_subject.empty() && (last.version > 0 || has_beginning_);
  const bool misses = can_miss && event.published_before.value() > last.version;
  if (misses) {
    connection.run(sql::insert_gap{.consumer = consumer_,
                                   .source = event.store_id,
                                   .stream = event.stream.name(),
                                   .after = last.version,
                                   .before = version,
                                   .missing = event.published_before.value(),
                                   .seen_at = now()});
  }
  last = {version, std::string{bytes_of(event.id)}, event.recorded_at, last.is_parked, true};
  return misses;
}

void ReaderStore::split_gaps(database::Connection& connection, const ReceivedEvent& event) {
  const std::string& stream = event.stream.name();
  const std::int64_t version = event.version.value();
  connection.run(sql::split_gap_before{.consumer = consumer_,
                                       .source = event.store_id,
                                       .stream = stream,
                                       .version = version,
                                       .previous = event.published_before.value()});
  connection.run(sql::split_gap_after{
      .consumer = consumer_, .source = event.store_id, .stream = stream, .version = version});
  connection.run(
      sql::delete_full_gaps{.consumer = consumer_, .source = event.store_id, .stream = stream});
}

std::int64_t ReaderStore::park(database::Connection& connection, const Delivery& delivery,
                               const Parking& parking) {
  const std::string headers = KeptHeaders::to_json(MessageHeaders{delivery.message.get()});
  sql::park_message parked{.consumer = consumer_,
                           .broker_stream = options_.stream,
                           .broker_sequence = number(delivery.place.sequence),
                           .broker_time = delivery.place.time,
                           .source = {},
                           .stream = {},
                           .version = {},
                           .subject = delivery.subject(),
                           .headers = headers,
                           .payload = delivery.payload(),
                           .parked_at = now(),
                           .attempts = parking.attempts,
                           .error = parking.error};
  if (parking.waits) {
    const ReceivedEvent& event = *delivery.event;
    parked.source = event.store_id;
    parked.stream = event.stream.name();
    parked.version = event.version.value();
    met(connection, event).is_parked = true;
  }
  if (connection.run(parked) == 0) return 0;
  return static_cast<std::int64_t>(headers.size() + delivery.payload().size());
}

void ReaderStore::advance(database::Connection& connection, const BrokerPlace& to) {
  for (const auto& [key, met] : met_) {
    if (!met.is_new) continue;
    connection.run(sql::upsert_position{.consumer = consumer_,
                                        .source = key.first,
                                        .stream = key.second,
                                        .version = met.version,
                                        .event_id = *met.event_id,
                                        .recorded_at = *met.recorded_at});
  }
  for (const auto& [source, sequence] : highest_) {
    connection.run(sql::upsert_source{.consumer = consumer_,
                                      .broker_stream = options_.stream,
                                      .source = source,
                                      .sequence = sequence});
  }
  Standing next = standing_;
  next.position = to.sequence;
  next.position_time = to.time;
  place(connection, std::move(next));
}

std::vector<OtherReader> ReaderStore::others(const std::string& store_id) const {
  std::vector<OtherReader> others;
  store_.database().read([&](database::Connection& connection) {
    auto rows = connection.rows(sql::list_other_readers{
        .consumer = consumer_, .broker_stream = options_.stream, .source = store_id});
    while (rows.step()) {
      others.push_back({.stream = std::string{rows.broker_stream()},
                        .filter = std::string{rows.filter()},
                        .position = static_cast<std::uint64_t>(rows.position()),
                        .waits_at = rows.waits_at(),
                        .highest = rows.highest()});
    }
  });
  return others;
}

// --- parked messages

std::int64_t ReaderStore::count_parked_bytes() const {
  std::int64_t bytes = 0;
  store_.database().read([&](database::Connection& connection) {
    auto sum = connection.rows(sql::count_parked_bytes{.consumer = consumer_});
    sum.step();
    bytes = sum.bytes();
  });
  return bytes;
}

std::optional<ToRetry> ReaderStore::next_to_retry(std::int64_t after) const {
  std::optional<ToRetry> parked;
  store_.database().read([&](database::Connection& connection) {
    auto next = connection.rows(sql::next_to_retry{
        .consumer = consumer_, .broker_stream = options_.stream, .now = now(), .after = after});
    if (!next.step()) return;
    parked = ToRetry{.number = next.parked(),
                     .source = text_or_none(next.source()),
                     .stream = text_or_none(next.stream()),
                     .headers = KeptHeaders::from_json(next.headers()),
                     .payload = std::string{next.payload()},
                     .attempts = static_cast<int>(next.attempts())};
  });
  return parked;
}

bool ReaderStore::take(const ToRetry& parked, const std::string& error) {
  bool taken = false;
  write([&](database::Connection& connection) {
    taken = connection.run(sql::take_parked{.parked = parked.number, .error = error}) > 0;
  });
  return taken;
}

bool ReaderStore::remove(database::Connection& connection, const ToRetry& parked) {
  hold(connection);
  return connection.run(sql::delete_parked{.parked = parked.number}) > 0;
}

void ReaderStore::keep(const ToRetry& parked, const std::string& error) {
  write([&](database::Connection& connection) {
    connection.run(sql::explain_parked{.parked = parked.number, .error = error});
    if (!parked.stream) return;
    connection.run(sql::retry_parked_stream{
        .consumer = consumer_, .source = *parked.source, .stream = *parked.stream, .retry = false});
  });
}

void ReaderStore::leave(const ToRetry& parked, const std::string& error) {
  write([&](database::Connection& connection) {
    connection.run(sql::leave_parked{.parked = parked.number, .error = error});
  });
}

}  // namespace stela::nats

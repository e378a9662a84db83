// How messages are handled, and what happens to those that fail.
#include "consumer_worker.hpp"
#include "database/failure_watch.hpp"
#include "database/occupation.hpp"
#include "database/storable_text.hpp"
#include "database/transaction.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace stela::nats {

using namespace std::chrono_literals;
using follow::Blame;
using follow::Fault;
using std::chrono::milliseconds;

namespace {

/// A transaction handles no further messages after this time, because others wait to write.
constexpr milliseconds longest_batch = 100ms;
/// How often the progress of other readers is checked.
constexpr milliseconds wait_for_others = 20ms;
/// How often operators' requests for retries are checked.
constexpr milliseconds retry_interval = 250ms;

constexpr const char* died_of_it =
    "the process ended, or the server ended the session, while it was handling this message";
constexpr const char* waits_for_newer = "; it waits for a process that knows it";
constexpr const char* another_history =
    "another history: the inbox has another event as this version of the stream. Was the store "
    "that published it restored from a backup, or is it a copy?";

std::int64_t number_of(const Delivery& delivery) noexcept {
  return static_cast<std::int64_t>(delivery.place.sequence);
}

}  // namespace

void Consumer::Worker::handle_queue() {
  std::size_t count = count_ready();
  if (count == 0) return wait_for_older();
  if (!charge_first()) return;
  if (alone_ > 0) count = 1;
  Together together;
  std::optional<Fault> failure;
  do {
    try {
      handle_together(count, together);
      break;
    } catch (const Fault& failed) {
      if (failed.blame == Blame::committed) return take_committed(together, failed);
      // Everything was undone. Handled one by one, only the culprit will fail.
      if (!together.has_failed && count > 1) {
        alone_ = count;
        return;
      }
      // The messages before the failed one succeeded, so handle them again without it.
      failure = failed;
      count = together.has_failed ? together.done : 0;
      together = {};
    } catch (const Error& e) {
      // The next holder of the lease, this process or another, sees that it wasn't released.
      if (is_lost_with_session(e, together)) reader_.lose(), charged_ = 0;
      throw;
    }
  } while (count > 0);
  finish(together);
  if (failure && together.done == count) take_failure(*failure);
}

std::size_t Consumer::Worker::count_ready() const {
  std::size_t count = 0;
  while (count < queue_.size()) {
    const auto& event = queue_[count].event;
    if (event && !older_.are_done_before(*event)) break;
    ++count;
  }
  return count;
}

void Consumer::Worker::wait_for_older() {
  const Delivery& next = queue_.front();
  const std::string streams = older_.look(*next.event, *source_, now());
  if (streams.empty()) return handle_queue();
  const std::string why =
      "earlier messages may be in streams that this consumer hasn't read yet; it waits for their "
      "readers:" +
      streams;
  if (reader_.note_standstill(next.event->generation.number, why)) {
    log(LogLevel::info, "consumer.waits_for_partition", next, why);
  }
  rest(wait_for_others);
}

/// Throws the first failure of a handler, without any effect.
void Consumer::Worker::handle_together(std::size_t count, Together& together) {
  const Steady limit = now() + longest_batch;
  transact([&](Transaction& transaction) {
    together = {};
    database::Connection& connection = database::open_transaction(transaction).connection();
    reader_.open(connection);
    do {
      handle_next(transaction, together);
      ++together.done;
    } while (together.done < count && now() < limit);
    reader_.advance(connection, queue_[together.done - 1].place);
  });
}

/// A handler failed: it misused the lent connection, or its changes fail at the commit.
void Consumer::Worker::transact(FunctionRef<void(Transaction&)> work) try {
  store_.transact(work);
} catch (const database::CommittedByCaller& e) {
  throw Fault{e.what(), Blame::committed};
} catch (const UsageError& e) {
  throw Fault{e.what()};
} catch (const ConstraintViolated& e) {
  throw Fault{e.what()};
}

void Consumer::Worker::handle_next(Transaction& transaction, Together& together) {
  const Delivery& delivery = queue_[together.done];
  database::OpenTransaction& open = database::open_transaction(transaction);
  database::Connection& connection = open.connection();
  if (!delivery.event) {
    return park(connection, delivery, together, {.error = delivery.problem, .attempts = 1});
  }
  switch (reader_.look(open, delivery)) {
    case Arrival::copy:
      ++together.tick.duplicates;
      return;
    case Arrival::another_history:
      return park(connection, delivery, together, {.error = another_history});
    case Arrival::behind_parked:
      park(connection, delivery, together, {.waits = true});
      break;
    case Arrival::next:
      call_handler(transaction, *delivery.event, together);
      break;
  }
  meet(connection, delivery, together);
}

void Consumer::Worker::meet(database::Connection& connection, const Delivery& delivery,
                            Together& together) {
  if (!reader_.meet(connection, *delivery.event)) return;
  ++together.tick.gaps;
  together.notes.push_back({LogLevel::error, "consumer.gap", &delivery,
                            "messages before this one are missing, the last of them version " +
                                std::to_string(delivery.event->published_before.value()) +
                                " of its stream"});
}

void Consumer::Worker::park(database::Connection& connection, const Delivery& delivery,
                            Together& together, const Parking& parking) {
  const std::int64_t bytes = reader_.park(connection, delivery, parking);
  if (bytes == 0) {
    ++together.tick.duplicates;
    return;
  }
  ++together.tick.parked;
  together.parked_bytes += bytes;
  if (parking.error.empty()) return;
  together.notes.push_back({LogLevel::error, "consumer.parked", &delivery, parking.error});
}

/// Parks the next message instead of handling it, as the transaction's last message.
void Consumer::Worker::park_next(database::Connection& connection, Together& together,
                                 const Parking& parking) {
  const Delivery& delivery = queue_[together.done++];
  park(connection, delivery, together, parking);
  meet(connection, delivery, together);
  reader_.advance(connection, delivery.place);
}

/// Errors of our own database pass through; those of another store are the handler's fault.
void Consumer::Worker::call_handler(Transaction& transaction, const ReceivedEvent& event,
                                    Together& together) {
  Handler* const handler = handler_of(event.kind.type);
  if (handler == nullptr) {
    ++together.tick.ignored;
    return;
  }
  database::OpenTransaction& open = database::open_transaction(transaction);
  database::FailureWatch watch{open.connection()};
  const database::Occupation occupation{who_};
  together.has_called_handler = true;
  try {
    const StoredEvent stored = event.as_stored();
    const ContextScope scope = ContextScope::handling(stored);
    handler->handle(transaction, stored, {event.codec, options_.keys});
    open.check_usable();
  } catch (...) {
    open.note_failure();
    const Fault fault = follow::current_fault(watch);
    open.check_open();
    together.has_failed = true;
    throw fault;
  }
  open.check_open();
  ++together.tick.handled;
  follow::take_caught(watch, together.caught, [&] { return event.as_stored().describe(); });
}

/// Called after the commit.
void Consumer::Worker::finish(const Together& together) {
  ConsumerTick tick = together.tick;
  tick.broker = tick_.broker;
  tick.reader = tick_.reader;
  tick_ += tick;
  parked_bytes_ += together.parked_bytes;
  for (const Note& note : together.notes) {
    log(note.level, note.name, *note.message, note.problem);
  }
  follow::report_caught(store_.conventions(), options_.name, "consumer.statement_failed",
                        {{"consumer", options_.name}, {"stream", options_.stream}},
                        together.caught);
  if (together.done == 0) return;
  reader_.confirm();
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(together.done));
  alone_ -= std::min(alone_, together.done);
  charged_ = 0;
}

// --- what failed

/// The first message of the queue has failed.
void Consumer::Worker::take_failure(const Fault& failed) {
  // The broker's message can't change, whereas a store's row might be restored.
  if (failed.blame == Blame::unreadable) return park_first(1, failed.what);
  if (failed.blame == Blame::newer) return leave_to_newer(failed);
  if (failed.blame == Blame::nobody) throw std::bad_alloc{};
  const Delivery& delivery = queue_.front();
  const std::int64_t sequence = number_of(delivery);
  const int before = reader_.standing().failing.attempts_at(sequence);
  const int attempts = charged_ == sequence ? before : before + 1;
  if (follow::is_final(failed.blame, attempts, options_.max_attempts)) {
    return park_first(attempts, failed.what);
  }
  reader_.note_failure({sequence, attempts, reader_.now() + backoff_after(attempts), failed.what});
  charged_ = 0;
  ++tick_.failed;
  log(LogLevel::warning, "consumer.handler_failed", delivery, failed.what);
}

void Consumer::Worker::park_first(int attempts, const std::string& error) {
  Together together;
  store_.database().write([&](database::Connection& connection) {
    together = {};
    reader_.open(connection);
    const bool waits = options_.on_failure == OnFailure::park_stream;
    park_next(connection, together, {.error = error, .attempts = attempts, .waits = waits});
  });
  finish(together);
}

/// The message isn't retried: its effects, and those of earlier messages, are committed.
void Consumer::Worker::take_committed(const Together& together, const Fault& failed) {
  Together all;
  reader_.write([&](database::Connection& connection) {
    all = together;
    all.done = std::min(all.done, queue_.size() - 1);
    park_next(connection, all, {.error = failed.what, .attempts = 1});
  });
  finish(all);
}

/// A store failure isn't the message's fault, unless the server ended the session because of the
/// handler.
bool Consumer::Worker::is_lost_with_session(const Error& error, const Together& together) const {
  return together.has_called_handler && store_.database().has_lost_session(error);
}

/// This process takes the stream again only after others have had time to take it.
void Consumer::Worker::leave_to_newer(const Fault& failed) {
  const Standing& standing = reader_.standing();
  const Delivery& delivery = queue_.front();
  const std::int64_t sequence = number_of(delivery);
  const Timestamp at = reader_.now();
  const bool was_left = standing.failing.at == sequence && standing.unknown_since;
  const Timestamp since = was_left ? *standing.unknown_since : at;
  if (at >= since + options_.unknown_version_wait) return park_first(1, failed.what);
  reader_.note_failure({sequence, 0, at, failed.what + waits_for_newer}, since);
  if (!was_left) {
    log(LogLevel::warning, "consumer.left_to_newer", delivery, failed.what + waits_for_newer);
  }
  charged_ = 0;
  left_to_newer_ = sequence;
  reader_.release();
  start_over();
}

// --- what may have killed a process

/// The first message may have killed the previous process, or its handler may have misused a shared
/// transaction, so its attempt is counted in advance. False if no attempts are left.
bool Consumer::Worker::charge_first() {
  const Delivery& delivery = queue_.front();
  const std::int64_t sequence = number_of(delivery);
  const bool is_suspect = alone_ > 0 && charged_ != sequence && delivery.event &&
                          handler_of(delivery.event->kind.type) != nullptr;
  if (!is_suspect) return true;
  const Standing& standing = reader_.standing();
  const follow::Failing& failing = standing.failing;
  const int attempts = failing.attempts_at(sequence) + 1;
  if (attempts > options_.max_attempts) {
    park_first(options_.max_attempts, failing.error);
    return false;
  }
  reader_.note_failure({sequence, attempts, Timestamp{}, died_of_it},
                       failing.at == sequence ? standing.unknown_since : std::nullopt);
  charged_ = sequence;
  return true;
}

// --- parked messages that are tried again

void Consumer::Worker::retry_parked() {
  if (now() < next_retry_) return;
  std::int64_t after = 0;
  while (const auto parked = reader_.next_to_retry(after)) {
    after = parked->number;
    // An operator's request is tried once, so that a message that kills processes isn't tried again
    // and again.
    if (reader_.take(*parked, died_of_it)) retry(*parked);
  }
  next_retry_ = now() + retry_interval;
}

void Consumer::Worker::retry(const ToRetry& parked) {
  const std::string name = "parked message " + std::to_string(parked.number);
  Together together;
  std::string error;
  try {
    const ReceivedEvent event = read_envelope(KeptHeaders{parked.headers}, parked.payload);
    // A message tried before had a handler, but one parked behind it may have none.
    if (parked.attempts > 0 && handler_of(event.kind.type) == nullptr) {
      log(LogLevel::warning, "consumer.retried_without_handler",
          name + " was retried where no handler of '" + event.kind.type +
              "' is registered, and is passed over");
    }
    transact([&](Transaction& transaction) {
      together = {};
      if (!reader_.remove(database::open_transaction(transaction).connection(), parked)) return;
      call_handler(transaction, event, together);
      ++together.tick.revived;
    });
    return finish(together);
  } catch (const Fault& e) {
    if (e.blame == Blame::nobody) {
      reader_.leave(parked, e.what);
      throw std::bad_alloc{};
    }
    error = e.what;
  } catch (const CorruptEvent& e) {
    error = database::made_storable(e.what());
  } catch (const Error& e) {
    if (!is_lost_with_session(e, together)) {
      reader_.leave(parked, e.what());
      throw;
    }
    error = died_of_it;
  }
  reader_.keep(parked, error);
  log(LogLevel::error, "consumer.parked",
      name + " failed again, at attempt " + std::to_string(parked.attempts + 1) + ": " + error);
}

}  // namespace stela::nats

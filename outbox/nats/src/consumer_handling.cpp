// How messages are handled, and what becomes of those that fail.
#include "consumer_worker.hpp"
#include "database/failure_watch.hpp"
#include "database/occupation.hpp"
#include "database/transaction.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace stela::nats {

using namespace std::chrono_literals;
using follow::Blame;
using follow::Fault;
using follow::RollBack;
using std::chrono::milliseconds;

namespace {

/// A transaction handles no more messages after so long: others wait to write.
constexpr milliseconds longest_batch = 100ms;
/// How often is looked whether other readers have come on.
constexpr milliseconds wait_for_others = 20ms;
/// How often is looked whether an operator wants a message to be tried again.
constexpr milliseconds retry_interval = 250ms;

constexpr const char* died_of_it = "the process ended while it was handling this message";
constexpr const char* lost_session =
    "the server ended the session while it was handling this message: ";
constexpr const char* waits_for_newer = "; it waits for a process that knows it";
constexpr const char* another_history =
    "another history: the inbox has another event as this version of the stream. Was the store "
    "that published it restored from a backup, or is it a copy?";

std::int64_t number_of(const Delivery& delivery) noexcept {
  return static_cast<std::int64_t>(delivery.place.sequence);
}

std::string describe_lost_session(const Error& error) {
  std::string what = lost_session + std::string{error.what()};
  std::replace_if(
      what.begin(), what.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return what;
}

}  // namespace

void Consumer::Worker::handle_queue() {
  std::size_t count = count_ready();
  if (count == 0) return wait_for_older();
  if (is_suspect() && !charge_first()) return;
  if (alone_ > 0) count = 1;
  Together together;
  std::optional<Fault> failure;
  try {
    do {
      handle_together(count, together);
      if (!together.failure) break;
      // What comes before the message that failed is good: it is done by itself.
      failure = std::move(together.failure);
      count = together.done;
      together = {};
    } while (count > 0);
  } catch (const Fault& failed) {
    // A handler ended the transaction, or was found at its end.
    if (failed.blame == Blame::committed) return take_committed(together, failed);
    if (count > 1) {
      // All of it was undone. One after the other, only the one that did so fails.
      alone_ = count;
      return;
    }
    return take_failure(failed);
  } catch (const Error& e) {
    if (!take_store_failure(e, together)) throw;
    return;
  }
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

void Consumer::Worker::handle_together(std::size_t count, Together& together) try {
  const Steady limit = now() + longest_batch;
  transact([&](Transaction& transaction) {
    together = {};
    database::OpenTransaction& open = database::open_transaction(transaction);
    // Nobody takes the lease while a handler works, however long.
    reader_.hold(open.connection());
    if (reader_.begin(open.connection())) {
      // Whoever removes what is parked must not do so between a look and what follows from it.
      open.lock();
      reader_.begin(open.connection());
    }
    while (together.done < count && handle_one(transaction, together)) {
      ++together.done;
      if (now() >= limit) break;
    }
    if (together.failure) throw RollBack{};
    if (together.done > 0) reader_.advance(open.connection(), queue_[together.done - 1].place);
  });
} catch (const RollBack&) {
}

/// A handler that misused the connection that it was lent has failed.
void Consumer::Worker::transact(FunctionRef<void(Transaction&)> work) try {
  store_.transact(work);
} catch (const database::CommittedByCaller& e) {
  throw Fault{e.what(), Blame::committed};
} catch (const UsageError& e) {
  throw Fault{e.what()};
}

/// False if the message stays for later.
bool Consumer::Worker::handle_one(Transaction& transaction, Together& together) {
  const Delivery& delivery = queue_[together.done];
  database::Connection& connection = database::open_transaction(transaction).connection();
  if (!delivery.event) {
    park(connection, delivery, together, {.error = delivery.problem, .attempts = 1});
    return true;
  }
  const ReceivedEvent& event = *delivery.event;
  switch (reader_.look(connection, delivery)) {
    case Arrival::copy:
      ++together.tick.duplicates;
      return true;
    case Arrival::another_history:
      park(connection, delivery, together, {.error = another_history});
      return true;
    case Arrival::behind_parked:
      meet(connection, delivery, together);
      park(connection, delivery, together, {.waits = true});
      return true;
    case Arrival::next:
      break;
  }
  try {
    call_handler(transaction, event, together);
  } catch (const Fault& failed) {
    together.failure = failed;
    return false;
  }
  meet(connection, delivery, together);
  return true;
}

void Consumer::Worker::meet(database::Connection& connection, const Delivery& delivery,
                            Together& together) {
  if (!reader_.meet(connection, *delivery.event, is_whole_, has_beginning_)) return;
  ++together.tick.gaps;
  together.notes.push_back({LogLevel::error, "consumer.gap", &delivery,
                            "messages before this one are missing, the last of them version " +
                                std::to_string(delivery.event->published_before.value()) +
                                " of its stream"});
}

void Consumer::Worker::park(database::Connection& connection, const Delivery& delivery,
                            Together& together, const Parking& parking) {
  const std::int64_t bytes =
      reader_.park(connection, delivery, parking.waits, parking.attempts, parking.error);
  if (bytes == 0) {
    ++together.tick.duplicates;
    return;
  }
  ++together.tick.parked;
  together.parked_bytes += bytes;
  if (parking.error.empty()) return;
  together.notes.push_back({LogLevel::error, "consumer.parked", &delivery, parking.error});
}

/// What our own database fails with is thrown as it is; what another store does is the handler's
/// fault.
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
    handler->handle(transaction, stored, event.codec);
    open.check_deferred_keys();
  } catch (...) {
    open.note_failure();
    const Fault fault = follow::current_fault(watch);
    open.check_open();
    throw fault;
  }
  open.check_open();
  ++together.tick.handled;
  follow::take_caught(watch, together.caught, [&] { return event.as_stored().describe(); });
}

/// What was done is committed.
void Consumer::Worker::finish(const Together& together) {
  if (together.done > 0) reader_.confirm();
  tick_ += with_state_of(together.tick);
  parked_bytes_ += together.parked_bytes;
  for (const Note& note : together.notes) {
    log(note.level, note.name, *note.message, note.problem);
  }
  follow::report_caught(store_.conventions(), options_.name, "consumer.statement_failed",
                        {{"consumer", options_.name}, {"stream", options_.stream}},
                        together.caught);
  if (together.done == 0) return;
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(together.done));
  alone_ -= std::min(alone_, together.done);
  is_charged_ = false;
}

/// Keeps the state of the broker and the reader.
ConsumerTick Consumer::Worker::with_state_of(ConsumerTick tick) const {
  tick.broker = tick_.broker;
  tick.reader = tick_.reader;
  return tick;
}

// --- what failed

/// The first message of the queue.
void Consumer::Worker::take_failure(const Fault& failed) {
  // What the broker delivered stays as it is: a row of a store may be restored.
  if (failed.blame == Blame::unreadable) return park_first(1, failed.what);
  if (failed.blame == Blame::newer) return leave_to_newer(failed);
  if (failed.blame == Blame::nobody) {
    take_back_charge();
    throw std::bad_alloc{};
  }
  const Standing& standing = reader_.standing();
  const Delivery& delivery = queue_.front();
  const std::int64_t sequence = number_of(delivery);
  const int attempts = standing.failing.attempts_at(sequence) + (is_charged_ ? 0 : 1);
  if (follow::is_final(failed.blame, attempts, options_.max_attempts)) {
    return park_first(attempts, failed.what);
  }
  reader_.note_failure({sequence, attempts, reader_.now() + backoff_after(attempts), failed.what},
                       {});
  is_charged_ = false;
  ++tick_.failed;
  log(LogLevel::warning, "consumer.handler_failed", delivery, failed.what);
}

void Consumer::Worker::park_first(int attempts, const std::string& error) {
  const Delivery& delivery = queue_.front();
  Together together;
  store_.database().write([&](database::Connection& connection) {
    together = {};
    reader_.begin(connection);
    const bool waits = options_.on_failure == OnFailure::park_stream;
    park(connection, delivery, together, {.error = error, .attempts = attempts, .waits = waits});
    meet(connection, delivery, together);
    reader_.advance(connection, delivery.place);
  });
  together.done = 1;
  finish(together);
}

/// It isn't tried again, and those before it took effect with it.
void Consumer::Worker::take_committed(Together& together, const Fault& failed) {
  const std::size_t guilty = std::min(together.done, queue_.size() - 1);
  const Delivery& delivery = queue_[guilty];
  store_.database().write([&](database::Connection& connection) {
    Together last;
    meet(connection, delivery, last);
    park(connection, delivery, last, {.error = failed.what, .attempts = 1});
    reader_.advance(connection, delivery.place);
    together.tick += last.tick;
    for (Note& note : last.notes) together.notes.push_back(std::move(note));
  });
  together.done = guilty + 1;
  finish(together);
}

/// Trouble with the store isn't the message's fault, unless the server ends the session for it once
/// more when it is alone.
bool Consumer::Worker::take_store_failure(const Error& error, const Together& together) {
  if (!together.has_called_handler || !store_.database().has_lost_session(error)) {
    take_back_charge();
    return false;
  }
  const bool is_guilty = std::exchange(is_charged_, false);
  if (is_guilty) charge_for_session(describe_lost_session(error));
  // Whoever takes the lease next, this process or another, sees that it wasn't given back.
  reader_.lose();
  is_reading_ = false;
  queue_.clear();
  return is_guilty;
}

void Consumer::Worker::charge_for_session(const std::string& what) {
  const Standing& standing = reader_.standing();
  follow::Failing failing = standing.failing;
  failing.next_attempt_at = reader_.now() + backoff_after(failing.attempts);
  failing.error = what;
  reader_.note_failure(failing, standing.unknown_since);
  ++tick_.failed;
  log(LogLevel::warning, "consumer.handler_failed", queue_.front(), what);
}

/// This process doesn't take the stream again before another one has had the time to.
void Consumer::Worker::leave_to_newer(const Fault& failed) {
  const Standing& standing = reader_.standing();
  const Delivery& delivery = queue_.front();
  const std::int64_t sequence = number_of(delivery);
  const Timestamp at = reader_.now();
  const bool was_left = standing.failing.at == sequence && standing.unknown_since;
  const Timestamp since = was_left ? *standing.unknown_since : at;
  if (at >= since + options_.unknown_version_wait) return park_first(1, failed.what);
  reader_.note_failure({sequence, 0, at, failed.what + waits_for_newer}, since);
  is_charged_ = false;
  if (!was_left) {
    log(LogLevel::warning, "consumer.left_to_newer", delivery, failed.what + waits_for_newer);
  }
  left_to_newer_ = sequence;
  reader_.release();
  queue_.clear();
  next_look_ = {};
}

// --- what may have killed a process

/// The process before this one may have died of the message, or its handler misused a transaction
/// that others shared.
bool Consumer::Worker::is_suspect() const {
  const Delivery& delivery = queue_.front();
  return alone_ > 0 && !is_charged_ && delivery.event &&
         handler_of(delivery.event->kind.type) != nullptr;
}

/// The attempt is counted before it is made. False if the message has had its attempts.
bool Consumer::Worker::charge_first() {
  const Standing& standing = reader_.standing();
  const std::int64_t sequence = number_of(queue_.front());
  const bool has_failed = standing.failing.at == sequence;
  const int attempts = standing.failing.attempts_at(sequence) + 1;
  if (attempts > options_.max_attempts) {
    park_first(options_.max_attempts, standing.failing.error);
    return false;
  }
  reader_.note_failure({sequence, attempts, Timestamp{}, died_of_it},
                       has_failed ? standing.unknown_since : std::nullopt);
  is_charged_ = true;
  return true;
}

void Consumer::Worker::take_back_charge() noexcept try {
  if (!std::exchange(is_charged_, false)) return;
  const Standing& standing = reader_.standing();
  follow::Failing failing = standing.failing;
  --failing.attempts;
  failing.next_attempt_at = {};
  reader_.note_failure(failing, standing.unknown_since);
} catch (...) {
  // One attempt too many is counted; the message has others.
}

// --- parked messages that are tried again

/// One that needs a newer process is left to that: this one looks again after a growing pause.
void Consumer::Worker::retry_parked() {
  if (now() < next_retry_) return;
  bool was_left = false;
  std::int64_t after = 0;
  while (const auto parked = reader_.next_to_retry(after)) {
    after = parked->number;
    // Whoever dies of it isn't to try it again and again: the operator's wish is granted once.
    if (reader_.take(*parked, died_of_it) && !retry(*parked)) was_left = true;
  }
  retries_left_to_newer_ = was_left ? retries_left_to_newer_ + 1 : 0;
  next_retry_ = now() + (was_left ? backoff_after(retries_left_to_newer_) : retry_interval);
}

/// False if it is left to a process that knows the version of its event.
bool Consumer::Worker::retry(const ToRetry& parked) {
  Together together;
  bool removed = false;
  std::string error;
  try {
    const ReceivedEvent event = read_envelope(KeptHeaders{parked.headers}, parked.payload);
    // What was tried before had a handler; what waits behind it needn't have one.
    if (parked.attempts > 0 && handler_of(event.kind.type) == nullptr) {
      log(LogLevel::warning, "consumer.retried_without_handler",
          "parked message " + std::to_string(parked.number) + " was retried where no handler of '" +
              event.kind.type + "' is registered, and is passed over");
    }
    transact([&](Transaction& transaction) {
      together = {};
      removed = reader_.remove(database::open_transaction(transaction).connection(), parked);
      if (!removed) return;
      call_handler(transaction, event, together);
    });
    if (removed) ++together.tick.revived;
    finish(together);
    return true;
  } catch (const Fault& e) {
    if (e.blame == Blame::newer) {
      reader_.leave(parked, e.what + waits_for_newer);
      return false;
    }
    if (e.blame == Blame::nobody) {
      reader_.leave(parked, e.what);
      throw std::bad_alloc{};
    }
    error = e.what;
  } catch (const CorruptEvent& e) {
    error = e.what();
  } catch (const Error& e) {
    if (!together.has_called_handler || !store_.database().has_lost_session(e)) {
      reader_.leave(parked, e.what());
      throw;
    }
    error = describe_lost_session(e);
  }
  reader_.keep(parked, error);
  log(LogLevel::error, "consumer.parked",
      "parked message " + std::to_string(parked.number) + " failed again, at attempt " +
          std::to_string(parked.attempts + 1) + ": " + error);
  return true;
}

}  // namespace stela::nats

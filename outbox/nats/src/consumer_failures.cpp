// Messages that fail, that may have killed a process, and that were given up.
#include "consumer_worker.hpp"
#include "database/transaction.hpp"

#include <stela/framework/backoff.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>

namespace stela::nats {

using std::chrono::milliseconds;

namespace {

/// What is noted of an attempt before it is made.
constexpr const char* died_of_it = "the process ended while it was handling this message";
constexpr const char* waits_for_newer = "; it waits for a process that knows it";

}  // namespace

// --- what may have killed a process

/// It was delivered before, and whoever had it didn't get far enough to say what became of it.
bool Consumer::Worker::is_suspect(const Delivery& delivery) const noexcept {
  return delivery.place.deliveries > 1 && delivery.event &&
         handler_of(delivery.event->kind.type) != nullptr;
}

/// Perhaps the process died of it, and would again: the attempt is counted before it is made.
void Consumer::Worker::handle_suspect(Delivery& delivery) {
  count_beforehand(delivery);
  if (!delivery.problem.empty()) return bury(delivery, 1, delivery.problem);
  if (!delivery.is_counted) return;
  if (delivery.attempts > options_.max_attempts) {
    return bury(delivery, options_.max_attempts, died_of_it);
  }
  try {
    handle_alone(delivery);
  } catch (const Error&) {
    // Trouble with the store isn't the message's fault.
    take_back_failure(delivery);
    throw;
  }
}

void Consumer::Worker::count_beforehand(Delivery& delivery) {
  ConsumerTick tick;
  store_.database().write(
      [&](database::Connection& connection) {
        inbox_.begin(connection);
        const auto standing = look(connection, delivery);
        delivery.is_settled = true;
        if (is_held(connection, delivery, standing, tick)) return;
        if (standing == InboxStore::Arrival::duplicate) {
          inbox_.settle(connection, *delivery.event);
          ++tick.duplicates;
        } else if (standing == InboxStore::Arrival::another_history) {
          delivery.problem = another_history;
        } else {
          delivery.is_settled = false;
          delivery.attempts = inbox_.note_failure(connection, *delivery.event, died_of_it);
          delivery.is_counted = true;
        }
      },
      // What is held or known is acknowledged next.
      database::Sync::if_shared);
  tick_ += tick;
}

// --- what failed

/// What the handler did is undone.
Failure Consumer::Worker::note_failure(database::Connection& connection, Delivery& delivery,
                                       const HandlerFailed& failed) {
  using Fate = Failure::Fate;
  delivery.is_settled = true;
  const ReceivedEvent& event = *delivery.event;
  const auto bury = [&](int attempts, const std::string& error) {
    inbox_.bury(connection, delivery, look(connection, delivery), attempts, error, is_whole_);
    return Failure{&delivery, Fate::dead, error};
  };
  if (inbox_.is_handled(connection, event)) {
    // Another process that had it, too, was luckier.
    inbox_.settle(connection, event);
    return {&delivery, Fate::duplicate, failed.what};
  }
  if (inbox_.is_held_otherwise(connection, event)) return bury(1, another_history);
  if (failed.is_permanent) return bury(1, failed.what);
  if (failed.is_unknown) {
    const auto left = leave_to_newer(connection, delivery, failed);
    return left ? *left : bury(1, failed.what);
  }
  if (delivery.is_counted) {
    inbox_.explain_failure(connection, event, failed.what);
  } else {
    delivery.attempts = inbox_.note_failure(connection, event, failed.what);
  }
  if (delivery.attempts >= options_.max_attempts) return bury(delivery.attempts, failed.what);
  inbox_.hold(connection, delivery, inbox_.now() + backoff_after(delivery.attempts));
  return {&delivery, Fate::held, failed.what};
}

/// Whoever claims it when it is due tries it: a process that knows the version handles it. Nothing
/// if none came in time. The pause grows with the time that it has waited.
std::optional<Failure> Consumer::Worker::leave_to_newer(database::Connection& connection,
                                                        Delivery& delivery,
                                                        const HandlerFailed& failed) {
  const ReceivedEvent& event = *delivery.event;
  const std::string error = failed.what + waits_for_newer;
  if (delivery.is_counted) inbox_.discount_failure(connection, event);
  const Timestamp now = inbox_.now();
  const Timestamp since = inbox_.note_unknown(connection, event, error, now);
  const Timestamp until = since + options_.unknown_version_wait;
  if (now >= until) return {};
  const auto waited = std::chrono::floor<milliseconds>(now - since);
  const milliseconds pause = std::clamp(waited, options_.retry_backoff, options_.retry_backoff_max);
  inbox_.hold(connection, delivery, std::min(now + spread(pause), until));
  using Fate = Failure::Fate;
  return Failure{&delivery, since == now ? Fate::left_to_newer : Fate::still_left, error};
}

void Consumer::Worker::note_failure(Delivery& delivery, const HandlerFailed& failed) {
  std::optional<Failure> failure;
  store_.database().write([&](database::Connection& connection) {
    inbox_.begin(connection);
    failure = note_failure(connection, delivery, failed);
  });
  report_failure(*failure);
}

void Consumer::Worker::report_failure(const Failure& failure) {
  switch (failure.fate) {
    case Failure::Fate::held:
      ++tick_.failed;
      return log(LogLevel::warning, "consumer.handler_failed", *failure.delivery, failure.error);
    case Failure::Fate::left_to_newer:
      if (!failure.delivery->held) ++tick_.held;
      return log(LogLevel::warning, "consumer.left_to_newer", *failure.delivery, failure.error);
    case Failure::Fate::still_left:
      return;
    case Failure::Fate::dead:
      ++tick_.dead;
      return log(LogLevel::error, "consumer.dead_letter", *failure.delivery, failure.error);
    case Failure::Fate::duplicate:
      ++tick_.duplicates;
      return;
  }
}

void Consumer::Worker::take_back_failure(const Delivery& delivery) noexcept try {
  store_.database().write(
      [&](database::Connection& connection) {
        inbox_.take_back_failure(connection, *delivery.event);
      },
      database::Sync::none);
} catch (const Error&) {
  // One attempt too many is counted; the message has others.
}

void Consumer::Worker::bury(Delivery& delivery, int attempts, const std::string& error,
                            bool is_handled) {
  store_.database().write([&](database::Connection& connection) {
    if (is_handled) return inbox_.insert_letter(connection, delivery, attempts, error);
    inbox_.begin(connection);
    inbox_.bury(connection, delivery, look(connection, delivery), attempts, error, is_whole_);
  });
  delivery.is_settled = true;
  ++tick_.dead;
  log(LogLevel::error, "consumer.dead_letter", delivery, error);
}

milliseconds Consumer::Worker::backoff_after(int attempts) {
  return spread(doubled(options_.retry_backoff, options_.retry_backoff_max, attempts));
}

/// Give or take a quarter, so that what failed together isn't tried together for ever.
milliseconds Consumer::Worker::spread(milliseconds wait) {
  std::uniform_int_distribution<std::int64_t> by{-wait.count() / 4, wait.count() / 4};
  return wait + milliseconds{by(random_)};
}

// --- dead letters

/// One that needs a newer process is left to that: this one looks again after a growing pause.
void Consumer::Worker::retry_letters() {
  if (now() < next_retry_of_letters_) return;
  bool was_left = false;
  for (std::int64_t after = 0;;) {
    if (!letter_ && !(letter_ = inbox_.next_to_retry(after))) break;
    after = letter_->number;
    // Whoever dies of it isn't to try it again and again: the operator's wish is granted once.
    if (letter_->is_taken || inbox_.take_letter(letter_->number, died_of_it)) {
      letter_->is_taken = true;
      if (!retry(*letter_)) was_left = true;
    }
    letter_.reset();
  }
  retries_left_to_newer_ = was_left ? retries_left_to_newer_ + 1 : 0;
  if (was_left) next_retry_of_letters_ = now() + backoff_after(retries_left_to_newer_);
}

/// False if it is left to a process that knows the version of its event.
bool Consumer::Worker::retry(const InboxStore::Letter& letter) {
  Together together;
  bool removed = false;
  try {
    const ReceivedEvent event = read_envelope(KeptHeaders{letter.headers}, letter.payload);
    transact([&](Transaction& transaction) {
      auto& connection = database::open_transaction(transaction).connection();
      removed = InboxStore::remove_letter(connection, letter.number);
      if (!removed) return;
      attempt(transaction, [&](Transaction& inner) { call_handler(inner, event, together); });
    });
    tick_ += together.tick;
    report_caught(together);
    if (removed) ++tick_.revived;
  } catch (const HandlerFailed& e) {
    if (e.is_unknown) {
      inbox_.leave_letter(letter.number, e.what + waits_for_newer);
      return false;
    }
    note_failed_retry(letter, e.what);
  } catch (const CorruptEvent& e) {
    note_failed_retry(letter, e.what());
  }
  return true;
}

void Consumer::Worker::note_failed_retry(const InboxStore::Letter& letter,
                                         const std::string& error) {
  inbox_.explain_letter(letter.number, error);
  const std::string number = std::to_string(letter.number);
  const std::string attempts = std::to_string(letter.attempts + 1);
  const std::array fields{LogEntry::Field{"consumer", options_.name},
                          LogEntry::Field{"stream", letter.broker_stream},
                          LogEntry::Field{"letter", number}, LogEntry::Field{"attempts", attempts},
                          LogEntry::Field{"problem", error}};
  store_.conventions().log->write(
      {.level = LogLevel::error,
       .name = "consumer.dead_letter",
       .message = "dead letter " + number + " failed again, at attempt " + attempts + ": " + error,
       .fields = fields});
}

}  // namespace stela::nats

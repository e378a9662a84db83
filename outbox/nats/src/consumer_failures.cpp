// Messages that fail, that may have killed a process, and that were given up.
#include "consumer_worker.hpp"
#include "database/transaction.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::nats {

using std::chrono::milliseconds;

namespace {

/// What is noted of an attempt before it is made.
constexpr const char* died_of_it = "the process ended while it was handling this message";

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
        const auto standing = inbox_.look(connection, delivery, is_whole_);
        delivery.is_settled = true;
        if (is_held(connection, delivery, standing, tick)) return;
        if (standing == InboxStore::Standing::duplicate) {
          inbox_.settle(connection, *delivery.event);
          ++tick.duplicates;
        } else if (standing == InboxStore::Standing::another_history) {
          delivery.problem = another_history;
        } else {
          delivery.is_settled = false;
          delivery.attempts = inbox_.note_failure(connection, *delivery.event, died_of_it);
          delivery.is_counted = true;
        }
      },
      database::Sync::none);
  tick_ += tick;
}

// --- what failed

void Consumer::Worker::note_failure(Delivery& delivery, const std::string& error,
                                    bool is_permanent) {
  if (is_permanent) return bury(delivery, 1, error);
  delivery.is_settled = true;
  bool is_handled = false;
  bool is_held_otherwise = false;
  store_.database().write([&](database::Connection& connection) {
    inbox_.begin(connection);
    is_handled = inbox_.is_handled(connection, *delivery.event);
    // Another process that had it, too, was luckier.
    if (is_handled) return inbox_.settle(connection, *delivery.event);
    is_held_otherwise = inbox_.is_held_otherwise(connection, *delivery.event);
    if (is_held_otherwise) return;
    if (delivery.is_counted) {
      inbox_.explain_failure(connection, *delivery.event, error);
    } else {
      delivery.attempts = inbox_.note_failure(connection, *delivery.event, error);
    }
    inbox_.hold(connection, delivery, inbox_.now() + backoff_after(delivery.attempts));
  });
  if (is_handled) {
    ++tick_.duplicates;
    return;
  }
  if (is_held_otherwise) return bury(delivery, 1, another_history);
  log(LogLevel::warning, "consumer.handler_failed", delivery, error);
  if (delivery.attempts >= options_.max_attempts) return bury(delivery, delivery.attempts, error);
  ++tick_.failed;
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

void Consumer::Worker::bury(Delivery& delivery, int attempts, const std::string& error) {
  store_.database().write([&](database::Connection& connection) {
    inbox_.begin(connection);
    inbox_.bury(connection, delivery, attempts, error, is_whole_);
  });
  delivery.is_settled = true;
  ++tick_.dead;
  log(LogLevel::error, "consumer.dead_letter", delivery, error);
}

milliseconds Consumer::Worker::backoff_after(int attempts) {
  const milliseconds wait = std::min(options_.retry_backoff * (1 << std::min(attempts - 1, 20)),
                                     options_.retry_backoff_max);
  // Give or take a quarter, so that what failed together isn't tried together for ever.
  std::uniform_int_distribution<std::int64_t> spread{-wait.count() / 4, wait.count() / 4};
  return wait + milliseconds{spread(random_)};
}

// --- dead letters

void Consumer::Worker::retry_letters() {
  for (;;) {
    if (!letter_ && !(letter_ = inbox_.next_to_retry())) return;
    // Whoever dies of it isn't to try it again and again: the operator's wish is granted once.
    if (letter_->is_taken || inbox_.take_letter(letter_->number, died_of_it)) {
      letter_->is_taken = true;
      retry(*letter_);
    }
    letter_.reset();
  }
}

void Consumer::Worker::retry(const InboxStore::Letter& letter) {
  ConsumerTick tick;
  bool removed = false;
  try {
    const ReceivedEvent event = read_envelope(KeptHeaders{letter.headers}, letter.payload);
    transact([&](Transaction& transaction) {
      auto& connection = database::open_transaction(transaction).connection();
      removed = InboxStore::remove_letter(connection, letter.number);
      if (removed) call_handler(transaction, event, tick);
    });
    tick_ += tick;
    if (removed) ++tick_.revived;
  } catch (const HandlerFailed& e) {
    inbox_.explain_letter(letter.number, e.what);
  } catch (const CorruptEvent& e) {
    inbox_.explain_letter(letter.number, e.what());
  }
}

}  // namespace stela::nats

#include "consumer_worker.hpp"

#include "connect.hpp"
#include "database/failure_watch.hpp"
#include "database/occupation.hpp"
#include "database/transaction.hpp"

#include <stela/framework/backoff.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>

namespace stela::nats {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

constexpr auto purge_interval = 60s;
constexpr milliseconds longest_trouble_wait = 5s;
/// A transaction handles no more messages after so long.
constexpr milliseconds longest_batch = 1s;

/// For what is being handled: called in a catch (...).
[[noreturn]] void rethrow_as_handler_failure() {
  try {
    throw;
  } catch (const Error& e) {
    switch (e.code()) {
      case ErrorCode::corrupt_event:
        throw HandlerFailed{e.what(), true};
      case ErrorCode::unknown_event:
        throw HandlerFailed{e.what(), false, true};
      default:
        throw HandlerFailed{e.what()};
    }
  } catch (const std::exception& e) {
    throw HandlerFailed{e.what()};
  } catch (...) {
    throw HandlerFailed{"the handler threw something that isn't a std::exception"};
  }
}

}  // namespace

Consumer::Worker::Worker(Store& store, const ConsumerOptions& options)
    : store_{store.anchor()},
      options_{options},
      inbox_{store, options.name},
      is_whole_{options.filter_subject.empty()} {
  if (is_whole_) inbox_.note_stream(options_.stream);
}

void Consumer::Worker::add(std::string_view event, std::unique_ptr<Handler> handler) {
  if (handler_of(std::string{event}) != nullptr) {
    throw UsageError{"this consumer has a handler for '" + std::string{event} + "' already"};
  }
  handlers_.push_back(std::move(handler));
}

void Consumer::Worker::on_tick(std::function<void(const ConsumerTick&)> listener) {
  listener_ = std::move(listener);
}

Consumer::Worker::Steady Consumer::Worker::now() const {
  return store_.database().clock().steady_now();
}

Handler* Consumer::Worker::handler_of(const std::string& event) const noexcept {
  for (const auto& handler : handlers_) {
    if (handler->answers_to(event)) return handler.get();
  }
  return nullptr;
}

// --- going round

ConsumerTick Consumer::Worker::poll() {
  std::int64_t seen = 0;
  bool is_news = false;
  const auto done = [&] {
    return tick_.handled + tick_.ignored + tick_.duplicates + tick_.dead + tick_.revived +
           tick_.lost;
  };
  do {
    seen = done();
    is_news = turn(std::min(options_.idle_wait, milliseconds{100}));
  } while (is_news || done() > seen);
  hand_back();
  tick_.broker = broker_;
  measure(tick_);
  return std::exchange(tick_, {});
}

void Consumer::Worker::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const bool went_well = try_turn();
    report();
    if (!went_well) pause(stop);
  }
  hand_back();
  pull_.reset();
}

bool Consumer::Worker::try_turn() try {
  turn(options_.idle_wait);
  troubles_ = 0;
  trouble_.clear();
  return true;
} catch (const Error& e) {
  if (e.code() != ErrorCode::broker_failed && !store_.database().recovers_from(e)) throw;
  ++troubles_;
  note_trouble(e);
  return false;
}

void Consumer::Worker::hand_back() {
  if (!pull_) return;
  pull_->hand_back();
  pull_->flush();
}

bool Consumer::Worker::turn(milliseconds wait) {
  purge_if_due();
  retry_letters();
  if (!pull_) connect();
  std::vector<Delivery> batch;
  try {
    drain();
    batch = pull_->fetch(options_.batch_size, until_next_held(wait));
    note_broker_works();
    note_settled();
    // What comes again may come the last first.
    std::sort(batch.begin(), batch.end(), [](const Delivery& a, const Delivery& b) {
      return a.place.sequence < b.place.sequence;
    });
    look_for_earlier_ones(batch);
    handle(batch);
    return std::any_of(batch.begin(), batch.end(),
                       [](const Delivery& delivery) { return delivery.place.deliveries == 1; });
  } catch (const Error& e) {
    // What was fetched and isn't answered comes again, with another connection or by and by.
    std::unique_ptr<Pull> ended;
    if (e.code() == ErrorCode::broker_failed) ended = std::move(pull_);
    for (const Delivery& delivery : batch) {
      if (pull_ && delivery.message) pull_->put_back(delivery, options_.retry_backoff);
    }
    if (ended) ended->fail_if_denied();
    throw;
  }
}

void Consumer::Worker::note_broker_works() {
  const bool was_in_trouble =
      broker_.state == BrokerState::down || broker_.state == BrokerState::misconfigured;
  broker_ = {.state = BrokerState::connected};
  if (was_in_trouble) log(LogLevel::info, "consumer.broker_back", "the broker answers again");
}

/// Says so unless it was the last to be said.
void Consumer::Worker::note_trouble(const Error& trouble) {
  const std::string_view what = trouble.what();
  const bool is_new = std::exchange(trouble_, what) != what;
  if (trouble.code() != ErrorCode::broker_failed) {
    if (is_new) log(LogLevel::warning, "consumer.trouble", what);
    return;
  }
  const bool is_misconfigured = dynamic_cast<const Misconfigured*>(&trouble) != nullptr;
  broker_ = {is_misconfigured ? BrokerState::misconfigured : BrokerState::down, trouble_};
  if (!is_new) return;
  log(LogLevel::error, is_misconfigured ? "consumer.misconfigured" : "consumer.broker_down", what);
}

void Consumer::Worker::pause(std::stop_token& stop) {
  const milliseconds most =
      std::min<milliseconds>(options_.retry_backoff_max, longest_trouble_wait);
  const milliseconds wait = doubled(options_.retry_backoff, most, troubles_);
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock{mutex};
  never.wait_for(lock, stop, wait, [] { return false; });
}

void Consumer::Worker::report() {
  if (tick_ == ConsumerTick{} && broker_ == reported_broker_) return;
  tick_.broker = reported_broker_ = broker_;
  measure(tick_);
  const ConsumerTick tick = std::exchange(tick_, {});
  if (listener_) listener_(tick);
}

void Consumer::Worker::measure(const ConsumerTick& tick) {
  MetricSink& metrics = *store_.conventions().metrics;
  const auto count = [&](std::string_view name, std::int64_t by) {
    if (by > 0) metrics.count(name, by, {{"consumer", options_.name}});
  };
  count("stela_consumer_handled_total", tick.handled);
  count("stela_consumer_failures_total", tick.failed);
  count("stela_consumer_held_total", tick.held);
  count("stela_consumer_dead_letters_total", tick.dead);
  count("stela_consumer_gaps_total", tick.gaps);
  count("stela_consumer_lost_total", tick.lost);
  metrics.gauge("stela_consumer_broker_up", tick.broker.is_connected() ? 1 : 0,
                {{"consumer", options_.name}});
  measure_held(metrics);
}

void Consumer::Worker::measure_held(MetricSink& metrics) try {
  metrics.gauge("stela_consumer_held_streams", static_cast<double>(inbox_.held().count_streams()),
                {{"consumer", options_.name}});
} catch (const Error& e) {
  // The next turn meets the trouble, too, and goes on after it.
  if (!store_.database().recovers_from(e)) throw;
}

void Consumer::Worker::purge_if_due() {
  if (now() < next_purge_) return;
  // Some at a time: the rest is due at the next turn.
  if (!inbox_.purge(options_.retention)) next_purge_ = now() + purge_interval;
}

void Consumer::Worker::connect() {
  pull_ = std::make_unique<Pull>(options_, [this] { return inbox_.settled(options_); });
  next_ask_ = {};
}

/// So that a consumer that is made again at the broker can continue there.
void Consumer::Worker::note_settled() {
  if (pull_->last_settled() == noted_) return;
  inbox_.note_settled(options_, *pull_->last_settled());
  noted_ = pull_->last_settled();
}

// --- messages

/// Where a stream's beginning is missing, only the broker can say that nothing before the first
/// message that comes of it is with another process. Asked before the batch is handled: most often
/// nobody has anything, and no message needs to be held.
void Consumer::Worker::look_for_earlier_ones(std::span<Delivery> batch) {
  if (!is_whole_ || pull_->has_whole_history() || !inbox_.meets_first_of_many(batch)) return;
  const Steady fetched = now();
  const OnTheirWay found = ask_what_is_on_its_way();
  if (found.others_settled_at < fetched) return;
  // A message that is missing between two of them may be with another process.
  std::uint64_t next = found.settled_through + 1;
  for (Delivery& delivery : batch) {
    if (delivery.place.sequence > next) return;
    delivery.is_first_to_come = true;
    next = std::max(next, delivery.place.sequence + 1);
  }
}

void Consumer::Worker::handle(std::span<Delivery> batch) {
  const auto patience = pull_->ack_wait() / 4;
  Steady told = now();
  bool one_by_one = false;
  while (!batch.empty()) {
    std::size_t done = 1;
    const auto is_doubtful = [this](const Delivery& delivery) { return is_suspect(delivery); };
    const auto fresh = std::find_if(batch.begin(), batch.end(), is_doubtful) - batch.begin();
    if (fresh == 0) {
      handle_suspect(batch.front());
    } else if (one_by_one) {
      handle_alone(batch.front());
    } else {
      try {
        done = handle_together(batch.first(static_cast<std::size_t>(fresh)));
      } catch (const HandlerFailed&) {
        // A handler ended the transaction, or was found at its end: all of it was undone. One after
        // the other, only the one that did so fails.
        one_by_one = true;
        continue;
      }
    }
    answer(batch.first(done));
    batch = batch.subspan(done);
    if (now() < told + patience) continue;
    for (const Delivery& delivery : batch) {
      if (!delivery.held) pull_->in_progress(delivery);
    }
    told = now();
  }
}

std::size_t Consumer::Worker::handle_together(std::span<Delivery> batch) {
  Together together;
  std::size_t done = 0;
  // Neither the broker must lose patience with the rest, nor those who wait to write.
  const Steady limit = now() + std::min<milliseconds>(pull_->ack_wait() / 4, longest_batch);
  try {
    transact([&](Transaction& transaction) {
      inbox_.begin(database::open_transaction(transaction).connection());
      for (Delivery& delivery : batch) {
        handle_one(transaction, delivery, together);
        ++done;
        if (now() >= limit) break;
      }
    });
  } catch (const HandlerFailed& failed) {
    if (!failed.is_committed || done == batch.size()) throw;
    // It isn't tried again. Those before it are duplicates now.
    bury(batch[done], 1, failed.what, true);
    return 0;
  }
  tick_ += together.tick;
  for (const Failure& failure : together.failures) report_failure(failure);
  report_caught(together);
  // What isn't handled has no effect that could be undone: each in a transaction of its own.
  for (Delivery& delivery : batch.first(done)) {
    if (!delivery.problem.empty()) bury(delivery, 1, delivery.problem);
  }
  return done;
}

/// A handler that misused the connection that it was lent has failed.
void Consumer::Worker::transact(FunctionRef<void(Transaction&)> work) try {
  store_.transact([&](Transaction& transaction) {
    // What is read of the inbox decides what is handled, and other processes write to it too.
    database::open_transaction(transaction).lock();
    work(transaction);
  });
} catch (const database::CommittedByCaller& e) {
  throw HandlerFailed{.what = e.what(), .is_committed = true};
} catch (const UsageError& e) {
  throw HandlerFailed{e.what()};
}

void Consumer::Worker::handle_alone(Delivery& delivery) {
  try {
    handle_together({&delivery, 1});
  } catch (const HandlerFailed& e) {
    note_failure(delivery, e);
  }
}

void Consumer::Worker::handle_one(Transaction& transaction, Delivery& delivery,
                                  Together& together) {
  ConsumerTick& tick = together.tick;
  delivery.is_settled = true;
  if (!delivery.event) return;
  delivery.problem.clear();
  ReceivedEvent& event = *delivery.event;
  database::Connection& connection = database::open_transaction(transaction).connection();
  const InboxStore::Arrival standing = look(connection, delivery);
  if (!delivery.is_counted && is_held(connection, delivery, standing, tick)) return;
  if (standing == InboxStore::Arrival::duplicate) {
    inbox_.settle(connection, event);
    ++tick.duplicates;
    return;
  }
  if (standing == InboxStore::Arrival::another_history) {
    delivery.problem = another_history;
    return;
  }
  try {
    attempt(transaction, [&](Transaction& inner) {
      if (inbox_.take(connection, event, standing, is_whole_)) {
        call_handler(inner, event, together);
      } else {
        ++tick.duplicates;
      }
    });
  } catch (const HandlerFailed& failed) {
    try {
      transaction.transact([&](Transaction&) {
        together.failures.push_back(note_failure(connection, delivery, failed));
      });
    } catch (const Error&) {
      // The handler ended the transaction, or left the connection in a state in which nothing can
      // be written: both end with the transaction.
      throw failed;
    }
  }
}

/// Where every message of a stream should have come, nothing before the first that comes is a gap,
/// too.
InboxStore::Arrival Consumer::Worker::look(database::Connection& connection,
                                           const Delivery& delivery) const {
  using Arrival = InboxStore::Arrival;
  if (!delivery.event) return Arrival::next;
  const Arrival standing = inbox_.look(connection, delivery, is_whole_);
  const bool misses_beginning = standing == Arrival::first_of_many && pull_->has_whole_history();
  return misses_beginning ? Arrival::behind_gap : standing;
}

/// True if it isn't the message's turn: then the inbox keeps it in mind, and the broker forgets it.
bool Consumer::Worker::is_held(database::Connection& connection, const Delivery& delivery,
                               InboxStore::Arrival standing, ConsumerTick& tick) {
  using Arrival = InboxStore::Arrival;
  const bool is_behind_gap = standing == Arrival::behind_gap;
  if (is_behind_gap && delivery.is_released) {
    ++tick.gaps;
    log(LogLevel::error, "consumer.gap", delivery,
        "messages before this one are missing, the last of them version " +
            std::to_string(delivery.event->published_before.value()) + " of its stream");
    return false;
  }
  const bool may_be_early =
      standing == Arrival::first_of_many && !delivery.is_released && !delivery.is_first_to_come;
  const bool waits = is_behind_gap || may_be_early || standing == Arrival::behind_failure ||
                     standing == Arrival::held_already;
  if (!waits) return false;
  if (is_behind_gap || may_be_early) inbox_.watch(*delivery.event);
  const auto wait =
      may_be_early ? 0ms : std::min<milliseconds>(pull_->gap_patience(), look_meanwhile);
  inbox_.hold(connection, delivery, inbox_.now() + wait);
  if (!delivery.held) ++tick.held;
  return true;
}

/// What a handler that fails did is undone. What our own database fails with is nobody's fault;
/// what another store does, the handler's.
void Consumer::Worker::attempt(Transaction& transaction, FunctionRef<void(Transaction&)> work) {
  const database::FailureWatch watch{database::open_transaction(transaction).connection()};
  try {
    transaction.transact(work);
  } catch (const HandlerFailed&) {
    watch.rethrow_failure();
    throw;
  }
}

void Consumer::Worker::call_handler(Transaction& transaction, const ReceivedEvent& event,
                                    Together& together) {
  Handler* const handler = handler_of(event.kind.type);
  if (handler == nullptr) {
    ++together.tick.ignored;
    return;
  }
  database::FailureWatch watch{database::open_transaction(transaction).connection()};
  const database::Occupation occupation{who_};
  try {
    const StoredEvent stored = event.as_stored();
    const ContextScope scope = ContextScope::handling(stored);
    handler->handle(transaction, stored, event.codec);
    database::open_transaction(transaction).check_deferred_keys();
  } catch (...) {
    rethrow_as_handler_failure();
  }
  ++together.tick.handled;
  if (std::string refusal = watch.take_refusal(); !refusal.empty()) {
    together.caught.emplace_back(event.as_stored().describe(), std::move(refusal));
  }
}

/// Nothing is swallowed: not even what the handler itself got over.
void Consumer::Worker::report_caught(const Together& together) {
  for (const auto& [event, error] : together.caught) {
    log(LogLevel::warning, "consumer.statement_failed",
        event + ": its handler went on after a statement had failed: " + error);
    store_.conventions().metrics->count("stela_handler_failed_statements_total", 1,
                                        {{"handler", options_.name}});
  }
}

/// What is acknowledged doesn't come again, so a power cut must not take it back.
void Consumer::Worker::answer(std::span<Delivery> batch) {
  const auto is_due = [](const Delivery& delivery) {
    return delivery.is_settled && !delivery.held;
  };
  if (std::none_of(batch.begin(), batch.end(), is_due)) return;
  if (store_.database().is_relaxed()) store_.database().sync();
  for (const Delivery& delivery : batch) {
    if (is_due(delivery)) pull_->ack(delivery);
  }
}

void Consumer::Worker::log(LogLevel level, std::string_view name, const Delivery& delivery,
                           const std::string& problem) {
  const std::string what =
      delivery.event ? delivery.event->as_stored().describe() : std::string{delivery.subject()};
  const std::array fields{
      LogEntry::Field{"consumer", options_.name}, LogEntry::Field{"stream", options_.stream},
      LogEntry::Field{"broker_sequence", std::to_string(delivery.place.sequence)},
      LogEntry::Field{"event", what}, LogEntry::Field{"problem", problem}};
  store_.conventions().log->write(
      {.level = level, .name = name, .message = what + ": " + problem, .fields = fields});
}

void Consumer::Worker::log(LogLevel level, std::string_view name, std::string_view problem) {
  const std::array fields{LogEntry::Field{"consumer", options_.name},
                          LogEntry::Field{"stream", options_.stream},
                          LogEntry::Field{"problem", std::string{problem}}};
  store_.conventions().log->write(
      {.level = level, .name = name, .message = problem, .fields = fields});
}

}  // namespace stela::nats

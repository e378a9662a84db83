#include "simulation/consumers/process.hpp"

#include <stela/eventstore/sql.hpp>
#include <stela/framework/detail/transaction_scope.hpp>
#include <stela/framework/error.hpp>

#include <new>
#include <stdexcept>
#include <utility>

namespace stela::sim {
namespace {

using detail::TransactionScope;
using namespace std::chrono_literals;

/// What ends a process, through handlers as well.
struct Killed final : ParticipantMissing {
  Killed() : ParticipantMissing{"the process was killed"} {}
};

class Journalist final : public LogSink {
 public:
  explicit Journalist(Town& town, const std::string& who) : town_{town}, who_{who} {}
  void write(const LogEntry& entry) noexcept override {
    town_.note(who_ + ": " + std::string{entry.name} + ": " + std::string{entry.message});
  }

 private:
  Town& town_;
  const std::string who_;
};

}  // namespace

/// Whoever looks at the time may find that others had their turn meanwhile, or be dead.
class Process::HostClock final : public Clock {
 public:
  explicit HostClock(Process& owner) : owner_{owner} {}

  Timestamp now() const override {
    owner_.town_.unlock();
    if (is_dead) throw Killed{};
    // A writer that begins has asked how long it runs, and holds the lock by now.
    const bool is_beginning = std::exchange(is_beginning_, false);
    if (is_awake) owner_.interrupt(is_beginning || TransactionScope::is_open());
    return Timestamp{std::chrono::microseconds{SimClock::start_of_wall + owner_.town_.stage.now()}};
  }
  std::chrono::steady_clock::time_point steady_now() const override {
    is_beginning_ = true;
    owner_.town_.unlock();
    if (is_awake) owner_.meet_neighbour();
    return std::chrono::steady_clock::time_point{
        std::chrono::microseconds{owner_.town_.stage.now() + second}};
  }

  bool is_awake = false;
  bool is_dead = false;

 private:
  Process& owner_;
  mutable bool is_beginning_ = false;
};

/// Handles the events of the town: each leaves a row.
class Process::Effect final : public nats::Handler {
 public:
  explicit Effect(Process& owner) : owner_{owner} {}
  bool answers_to(std::string_view event) const noexcept override {
    return event == "thing.happened";
  }
  void handle(Transaction& transaction, const StoredEvent& event, const Reading&) override {
    owner_.handle(transaction, event);
  }

 private:
  Process& owner_;
};

struct Process::Body {
  Body(Process& owner, std::int64_t the_number)
      : number{the_number},
        schema{owner.town_.newest_schema},
        log{owner.town_, owner.stream_ + " #" + std::to_string(the_number)},
        clock{owner},
        store{sqlite::open(owner.town_.file(), {.durability = sqlite::Durability::relaxed,
                                                .busy_timeout = 1ms,
                                                .log = &log,
                                                .clock = &clock})} {}

  const std::int64_t number;
  const int schema;
  Journalist log;
  HostClock clock;
  Store store;
  std::unique_ptr<mutants::Follower> follower;
};

Process::Process(Town& town, std::string stream) : town_{town}, stream_{std::move(stream)} {}

Process::~Process() = default;

void Process::live() {
  wait(town_.opens_at + town_.chance.below(2 * second));
  while (!town_.is_over) {
    try {
      if (!body_) start();
      body_->clock.is_awake = true;
      work();
      // Whoever was killed may not have noticed.
      if (body_->clock.is_dead) throw Killed{};
      body_->clock.is_awake = false;
      body_.reset();
    } catch (const Killed&) {
      bury();
    } catch (const StoreBusy&) {
      if (body_) body_->clock.is_awake = false;
      if (body_ && !body_->follower) bury();
    } catch (const BrokerFailed&) {
      body_->clock.is_awake = false;
    } catch (const std::bad_alloc&) {
      body_->clock.is_awake = false;
    } catch (const std::exception& e) {
      if (body_ && !body_->clock.is_dead) {
        town_.audit->contradict("a consumer gave up: " + std::string{e.what()});
      }
      bury();
    }
    if (!town_.is_over) town_.stage.wait(town_.chance.between(10 * ms, 2 * second));
  }
  town_.unlock();
  if (body_) body_->clock.is_awake = false;
  body_.reset();
}

void Process::start() {
  stop_ = std::stop_source{};
  body_ = std::make_unique<Body>(*this, ++town_.bodies);
  nats::ConsumerPorts ports{
      .connect =
          [this](const nats::ConsumerOptions& options) {
            return connect(town_.broker, town_.chance, *this, options);
          },
      .rest =
          [this](const std::stop_token& stop, std::chrono::milliseconds length) {
            if (!stop.stop_requested()) wait(micros(length));
          },
      .random = town_.chance};
  body_->follower = mutants::make_follower(
      town_.plan.mutant, body_->store,
      {.name = consumer_name,
       .stream = stream_,
       .filter_subject = town_.filter,
       .start = town_.start,
       .batch_size = 10,
       .idle_wait = 1s,
       .lease_ttl = std::chrono::milliseconds{lease_ttl / ms},
       .retry_backoff = 500ms,
       .retry_backoff_max = 4s,
       .max_attempts = max_attempts,
       .on_failure = town_.on_failure,
       .unknown_version_wait = std::chrono::milliseconds{unknown_version_wait / ms}},
      std::move(ports));
  body_->follower->add("thing.happened", std::make_unique<Effect>(*this));
}

/// Until it is asked to leave.
void Process::work() {
  if (!town_.chance.happens(0.15)) return body_->follower->run(stop_.get_token());
  for (int i = 0; i < 20 && !stop_.stop_requested() && !town_.is_over; ++i) {
    body_->follower->run_once();
    if (body_->clock.is_dead) throw Killed{};
    wait(300 * ms);
  }
}

/// What a dead process had is rolled back by now. Its lease stays; whether others see that it ended
/// is up to chance: it may hang instead.
void Process::bury() {
  if (!body_) return;
  body_->clock.is_dead = true;
  if (town_.chance.happens(0.3)) {
    town_.meet("processes that hang for ever");
    hanging_.push_back(std::move(body_));
  }
  body_.reset();
}

void Process::die(const char* where) {
  town_.meet(where);
  town_.note(stream_ + " #" + std::to_string(body_->number) + " dies: " + where);
  body_->clock.is_dead = true;
  throw Killed{};
}

void Process::wait(Time duration) {
  if (body_ && body_->clock.is_dead) throw Killed{};
  town_.locks_in_a_row = 0;
  town_.stage.wait(duration);
  if (body_) interrupt(false);
}

void Process::interrupt(bool is_inside) {
  if (!body_->clock.is_awake) return;
  Chance& chance = town_.chance;
  if (chance.happens(town_.kill)) die(is_inside ? "kills inside a transaction" : "kills");
  if (!is_inside && chance.happens(town_.pause)) {
    town_.meet("pauses");
    const Time length = chance.happens(0.5) ? chance.below(4 * lease_ttl) : chance.below(second);
    town_.note(stream_ + " #" + std::to_string(body_->number) + " pauses");
    town_.stage.wait(length);
  }
}

/// Somebody else has the lock at the next transaction, and until the one after that.
void Process::meet_neighbour() {
  if (TransactionScope::is_open() || !town_.chance.happens(town_.busy)) return;
  town_.lock();
}

void Process::handle(Transaction& transaction, const StoredEvent& event) {
  const std::string id = event.id.to_string();
  interrupt(true);
  if (event.schema_version() > body_->schema) {
    town_.meet("events of a version that isn't known");
    town_.audit->note_unknown(id);
    throw UnknownEvent{"version " + std::to_string(event.schema_version()) + " isn't known"};
  }
  Mood& mood = town_.moods[id];
  Sql{transaction}.execute(
      "INSERT INTO effects (event, process, broker_stream) VALUES (?1, ?2, ?3)", id, body_->number,
      stream_);
  if (town_.chance.happens(0.02)) town_.stage.pass(town_.chance.below(200 * ms));
  if (mood.deaths > 0) {
    --mood.deaths;
    town_.audit->note_death(id, stream_);
    die("handlers that kill");
  }
  if (mood.shortages > 0) {
    --mood.shortages;
    town_.meet("handlers that run out of memory");
    throw std::bad_alloc{};
  }
  if (mood.is_permanent) {
    town_.meet("handlers that fail for good");
    throw CorruptEvent{"it can't be read"};
  }
  if (mood.failures > 0) {
    --mood.failures;
    town_.meet("handlers that fail");
    town_.audit->note_failure(id);
    throw std::runtime_error{"it fails"};
  }
  interrupt(true);
}

}  // namespace stela::sim

// States of projectors, processes, timers and consumers.
#include "nats/jetstream.hpp"
#include "projections/bookings.hpp"
#include "support/orders.hpp"
#include "support/zoo/zoo.hpp"

#include <stela/nats/consumer.hpp>
#include <stela/projections.hpp>

#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

namespace stela::test::zoo {
namespace {

using namespace std::chrono_literals;

/// The event in a later release.
struct PlacedLater {
  static constexpr EventType event_type{"order.placed", 2, should_publish};
  using Supersedes = OrderPlaced;
  static PlacedLater upcast(const OrderPlaced&) { return {}; }
  template <class Archive>
  void serialize(Archive&) {}
};

template <class Placed>
class Tally {
 public:
  static constexpr ProjectorType projector_type{"tally", 1};
  using Events = EventSet<Placed>;

  explicit Tally(bool is_well = true) : is_well_{is_well} {}
  void create(ReadModel& model) { model.execute("CREATE TABLE {tally} (n INTEGER)"); }
  void project(ReadModel& model, const Recorded<Placed>&) {
    if (!is_well_) throw std::runtime_error{"can't take it"};
    model.execute("INSERT INTO {tally} VALUES (1)");
  }

 private:
  bool is_well_;
};

// ---- Projectors

template <class Placed = OrderPlaced>
void project(Habitat& habitat, bool is_well, const ProjectorOptions& options) {
  Projections projections{habitat.store()};
  projections.add(Tally<Placed>{is_well}, options);
  Runner{projections}.run_once();
}

void catch_up(Habitat& habitat) {
  project(habitat, true, {});
}

std::function<void(Habitat&)> fail_to_project(const ProjectorOptions& options) {
  return [=](Habitat& habitat) {
    habitat.append(1);
    project(habitat, false, options);
  };
}

void meet_a_later_event(Habitat& habitat) {
  habitat.append_at(system_clock().now(), 2);
  project(habitat, true, {});
}

void leave_projector_behind(Habitat& habitat) {
  project(habitat, true, {});
  habitat.append(1);
}

void take_part(Habitat& habitat) {
  Projections projections{habitat.store()};
  projections.add_inline(Tally<OrderPlaced>{});
}

void leave_out_of_appends(Habitat& habitat) {
  take_part(habitat);
  ProjectionOperations{habitat.store()}.leave_behind("tally");
  habitat.append_at(ago(2min));
}

void let_projector_be_late(Habitat& habitat) {
  project(habitat, true, {});
  habitat.append_at(ago(2min));
  habitat.sql("UPDATE projections SET owner = 'r1', lease_until = " + in_sql(ago(-1h)));
}

void end_late_runner(Habitat& habitat) {
  habitat.sql("UPDATE projections SET owner = NULL, lease_until = 0");
  project(habitat, true, {});
}

// ---- Processes: a booking, whose payment was due two minutes ago

void run_process(Habitat& habitat, DueHook hook = {}) {
  Projections projections{habitat.store()};
  projections.add_process(PaymentDeadline{std::move(hook)}, {.handling = {.max_attempts = 1}});
  Runner{projections}.run_once();
}

void fire_timers(Habitat& habitat) {
  run_process(habitat);
}

void set_timer(Habitat& habitat) {
  run_process(habitat);
  request(habitat.store(), "1");
  run_process(habitat);
}

void let_timer_be_overdue(Habitat& habitat) {
  set_timer(habitat);
  TimerOperations{habitat.store(), "zoo"}.move({"payment_deadline", "booking-1", "not_paid"},
                                               ago(2min));
}

void let_process_be_overdue_and_behind(Habitat& habitat) {
  let_timer_be_overdue(habitat);
  request(habitat.store(), "2");
}

void park_timer(Habitat& habitat) {
  let_timer_be_overdue(habitat);
  run_process(habitat, [](stela::Process&, const std::string&) { throw std::runtime_error{"no"}; });
}

void forget_timer(Habitat& habitat) {
  let_timer_be_overdue(habitat);
  habitat.sql("UPDATE projection_timers SET state = 'unknown'");
}

void hold_timers(Habitat& habitat) {
  set_timer(habitat);
  habitat.well({"timers", "hold", "--why", "moving house"});
}

// ---- Consumers

nats::ConsumerOptions billing(Habitat& habitat) {
  return {.url = habitat.broker().url(),
          .name = "billing",
          .stream = "SHOP",
          .idle_wait = 20ms,
          .retry_backoff = 1ms,
          .retry_backoff_max = 1ms};
}

/// Behaves like a process of its own.
class Reading {
 public:
  Reading(Store& store, const nats::ConsumerOptions& options,
          const std::function<void(nats::Consumer&)>& add_handler)
      : consumer_{store, options} {
    add_handler(consumer_);
    thread_ = std::jthread{[this](const std::stop_token& stop) { consumer_.run(stop); }};
  }

 private:
  nats::Consumer consumer_;
  std::jthread thread_;
};

template <class Placed = OrderPlaced>
void consume(Habitat& habitat, bool is_well, const nats::ConsumerOptions& options) {
  habitat.keeps.clear();
  habitat.keeps.push_back(
      std::make_shared<Reading>(habitat.store(), options, [=](nats::Consumer& consumer) {
        consumer.on<Placed>([=](Transaction&, const Recorded<Placed>&) {
          if (!is_well) throw std::runtime_error{"no such customer"};
        });
      }));
}

void publish_orders(Habitat& habitat, int count) {
  habitat.enable_outbox();
  habitat.append(count);
  habitat.publish();
}

void read_again(Habitat& habitat) {
  consume(habitat, true, billing(habitat));
}

std::function<void(Habitat&)> fail_to_consume(
    int count, const std::function<void(nats::ConsumerOptions&)>& change) {
  return [=](Habitat& habitat) {
    publish_orders(habitat, count);
    nats::ConsumerOptions options = billing(habitat);
    change(options);
    consume(habitat, false, options);
  };
}

void stop_reading(Habitat& habitat) {
  publish_orders(habitat, 1);
  read_again(habitat);
  eventually([&] { return habitat.sql("SELECT position FROM inbox_readers")[0] == "1"; });
  habitat.keeps.clear();
}

std::function<void(Habitat&)> change_reader(const std::string& what) {
  return [=](Habitat& habitat) {
    stop_reading(habitat);
    habitat.sql("UPDATE inbox_readers SET " + what);
  };
}

void expire_lease(Habitat& habitat) {
  change_reader("owner = 'one', lease_until = " + in_sql(ago(5s)))(habitat);
}

void consume_a_later_event(Habitat& habitat) {
  habitat.enable_outbox();
  habitat.append_at(system_clock().now(), 2);
  habitat.publish();
  consume(habitat, true, billing(habitat));
}

void consume_as_a_later_process(Habitat& habitat) {
  consume<PlacedLater>(habitat, true, billing(habitat));
}

void pause(Habitat& habitat) {
  stop_reading(habitat);
  habitat.well({"inbox", "pause", "billing"});
}

/// Deletes a message that was never read.
void miss_a_message(Habitat& habitat) {
  habitat.enable_outbox();
  for (int i = 0; i < 3; ++i) {
    habitat.appended = 0;
    habitat.append(1);
  }
  habitat.publish();
  JetStream{habitat.broker().url()}.erase("SHOP", 2);
  read_again(habitat);
}

void publish_and_read(Habitat& habitat) {
  habitat.publish();
  read_again(habitat);
}

Animal of(const std::string& subject, const std::string& code, std::function<void(Habitat&)> build,
          std::function<void(Habitat&)> mend = {}) {
  return {.code = code,
          .subject = subject,
          .build = std::move(build),
          .chains = {{"", {code}}, {subject, {code}}},
          .mend = std::move(mend)};
}

}  // namespace

std::vector<Animal> of_projections() {
  const ProjectorOptions patient{.max_attempts = 5, .retry_backoff = 1h, .retry_backoff_max = 1h};
  Animal parked = of("tally", "projector_parked",
                     fail_to_project({.on_error = OnError::park, .max_attempts = 1}));
  parked.settle = catch_up;
  Animal behind =
      of("payment_deadline", "process_overdue", let_process_be_overdue_and_behind, fire_timers);
  behind.variety = "_behind";
  behind.cause = "projector_unattended";
  behind.chains = {{"", {"projector_unattended"}}, {"payment_deadline", {"projector_unattended"}}};
  Animal held = of("", "timers_held", hold_timers);
  held.chains["payment_deadline"] = {"timers_held"};
  Animal process_parked = of("payment_deadline", "process_parked", park_timer);
  process_parked.words = {{"KEY", "booking-1"}, {"KIND", "not_paid"}};
  process_parked.is_undated = true;
  Animal left_out = of("tally", "projector_late", leave_out_of_appends, take_part);
  left_out.variety = "_left_out";
  Animal unknown = of("payment_deadline", "process_unknown_timers", forget_timer, fire_timers);
  unknown.is_undated = true;
  return {of("tally", "projector_stopped", fail_to_project({.max_attempts = 1})),
          of("tally", "projector_unknown_version", meet_a_later_event,
             [](Habitat& habitat) { project<PlacedLater>(habitat, true, {}); }),
          of("tally", "projector_failing", fail_to_project(patient),
             [](Habitat& habitat) {
               habitat.well({"projections", "retry", "tally"});
               project(habitat, true, {});
             }),
          of("tally", "projector_unattended", leave_projector_behind, catch_up),
          of("tally", "projector_late", let_projector_be_late, end_late_runner),
          left_out,
          parked,
          held,
          of("payment_deadline", "process_overdue", let_timer_be_overdue, fire_timers),
          behind,
          process_parked,
          unknown};
}

std::vector<Animal> of_consumers() {
  const auto once = [](nats::ConsumerOptions& options) { options.max_attempts = 1; };
  const auto patiently = [](nats::ConsumerOptions& options) {
    options.retry_backoff = options.retry_backoff_max = 1h;
  };
  const auto narrowly = [](nats::ConsumerOptions& options) {
    options.max_attempts = 1;
    options.batch_size = 1;
    options.parked_bytes_limit = 1;
  };
  Animal parked = of("billing", "consumer_parked", fail_to_consume(1, once));
  parked.words = {{"MESSAGE", "1"}};
  parked.settle = read_again;
  Animal standing = of("billing", "consumer_standing", fail_to_consume(2, narrowly));
  standing.chains = {};
  standing.words = {{"MESSAGE", "1"}};
  standing.settle = read_again;
  Animal gaps = of("billing", "consumer_gaps", miss_a_message);
  gaps.settle = publish_and_read;
  Animal unattended = of("billing", "consumer_unattended", stop_reading, read_again);
  unattended.words = {{"STREAM", "SHOP"}};
  Animal waiting =
      of("billing", "consumer_waiting",
         change_reader("waits_at = 2, error = 'for SHOP_p01', failing_since = " + in_sql(ago(5s))),
         read_again);
  waiting.words = {{"STREAM", "SHOP"}};
  return {
      of("billing", "consumer_overdue", expire_lease, read_again),
      unattended,
      of("billing", "consumer_failing", fail_to_consume(1, patiently),
         [](Habitat& habitat) {
           habitat.keeps.clear();
           habitat.sql("UPDATE inbox_readers SET next_attempt_at = 0");
           read_again(habitat);
         }),
      of("billing", "consumer_unknown_version", consume_a_later_event, consume_as_a_later_process),
      waiting,
      standing,
      of("billing", "consumer_paused", pause),
      parked,
      gaps};
}

}  // namespace stela::test::zoo

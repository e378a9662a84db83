#include "chaos/roles.hpp"

#include "chaos/appender.hpp"
#include "chaos/jumping_clock.hpp"
#include "chaos/mutant_relay.hpp"
#include "chaos/shop.hpp"
#include "support/process.hpp"

#include <stela/nats/consumer.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox/relay.hpp>
#include <stela/projections.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

void note_effect(Transaction& transaction, const Recorded<TicketIssued>& ticket) {
  Sql{transaction}.execute(
      "INSERT INTO effects (id, stream, version, sequence) VALUES (?1, ?2, ?3, ?4)",
      ticket.id().to_string(), ticket.stream().name(), ticket.version().value(),
      ticket.sequence().value());
}

struct Reminder {
  static constexpr TimerType timer_type{"reminder", 1};
  std::int64_t serial = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(serial));
  }
};

class Reminders {
 public:
  static constexpr ProcessType process_type{"reminders"};
  using Events = EventSet<TicketIssued>;
  using Timers = TimerSet<Reminder>;

  std::string key(const Recorded<TicketIssued>& ticket) {
    return "reminder-" + std::to_string(ticket->serial);
  }
  void react(Process& process, const Recorded<TicketIssued>& ticket) {
    // By the right clock: the ticket may have been issued by one that was hours ahead.
    process.set(Reminder{ticket->serial}, system_clock().now() + 300ms);
  }
  void due(Process& process, const Reminder& timer) {
    process.unit().append(StreamId::parse(process.key()), ExpectedVersion::none(),
                          TicketReminded{timer.serial});
  }
};

RelayOptions relay_options(const Settings& settings) {
  if (settings.defaults) return {};
  return {.lease_ttl = 2'000ms,
          .lease_renew = 500ms,
          .heartbeat_ttl = 2'000ms,
          .batch_size = settings.batch_size,
          .window = settings.batch_size * 4,
          .idle_backoff = 200ms,
          .publish_timeout = 700ms,
          .retry_backoff = 50ms,
          .retry_backoff_max = 500ms,
          .max_attempts = 1'000'000};
}

}  // namespace

bool may_pass(const Error& error) {
  return error.is_retryable() || error.code() == ErrorCode::store_full;
}

void persist(const std::stop_token& stop, const std::function<void()>& work) {
  do {
    try {
      return work();
    } catch (const Error& e) {
      // Where a commit is in doubt, whoever opens the database anew can go on.
      if (!may_pass(e) && e.code() != ErrorCode::commit_in_doubt) throw;
    }
  } while (!test::is_stopped_within(20ms, stop));
}

OutboxOptions outbox_options(const Settings& settings) {
  return {.fence = settings.fence};
}

nats::PublisherOptions publisher_options(const Settings& settings, const std::string& url) {
  nats::PublisherOptions options{
      .url = url,
      .prefix = "shop",
      .stream = "SHOP",
      .fence = settings.fence,
      .ensure_stream = true,
      // So short that nothing can rely on it.
      .stream_options = {.replicas = settings.servers, .duplicate_window = 1s}};
  if (settings.defaults) return options;
  options.connect_timeout = 500ms;
  options.publish_timeout = 700ms;
  return options;
}

nats::PublisherOptions reader_options(const Settings& settings, const std::string& url) {
  nats::PublisherOptions options = publisher_options(settings, url);
  options.connect_timeout = nats::PublisherOptions{}.connect_timeout;
  options.publish_timeout = nats::PublisherOptions{}.publish_timeout;
  return options;
}

std::string ledger_of(const Settings& settings, int number) {
  return settings.folder + "/ledger." + std::to_string(number);
}

nats::ConsumerOptions consumer_options(const Settings& settings, const Part& part,
                                       const std::string& stream) {
  if (settings.defaults) return {.url = part.url, .name = "effects", .stream = stream};
  return {.url = part.url,
          .connect_timeout = 500ms,
          .name = "effects",
          .stream = stream,
          .idle_wait = 200ms,
          .lease_ttl = 2'000ms,
          .retry_backoff = 50ms,
          .retry_backoff_max = 500ms};
}

void append(const Settings& settings, const Part& part) {
  Appender{settings, part}.run(part.stop);
}

void relay(const Settings& settings, const Part& part) {
  const JumpingClock clock{settings.clock_of(part.number)};
  auto store = open_shop(settings, {.number = part.number, .clock = &clock});
  Outbox outbox{store, outbox_options(settings)};
  nats::Publisher publisher{publisher_options(settings, part.url)};
  if (settings.mutant != mutants::Mutant::none) {
    return run_mutant(outbox, publisher, relay_options(settings), settings.mutant, part.stop);
  }
  Relay{outbox, publisher, relay_options(settings)}.run(part.stop);
}

void remind(const Settings& settings, const Part& part) {
  const JumpingClock clock{settings.clock_of(part.number)};
  auto store = open_shop(settings, {.number = part.number, .clock = &clock});
  Outbox outbox{store, outbox_options(settings)};
  Projections projections{store};
  projections.add_process(
      Reminders{},
      {.start = ReactionStart::beginning,
       .handling = {.max_attempts = 1'000'000, .retry_backoff = 50ms, .retry_backoff_max = 500ms}});
  Runner{projections, {.lease_ttl = 2'000ms, .idle_backoff = 200ms, .clock_jump_limit = 5min}}.run(
      part.stop);
}

void consume(const Settings& settings, const Part& part) {
  const JumpingClock clock{settings.clock_of(part.number)};
  auto store = open_effects(settings, {.number = part.number, .clock = &clock});
  std::vector<std::thread> threads;
  for (const std::string& stream : settings.streams()) {
    threads.emplace_back([&, stream] {
      persist(part.stop, [&] {
        nats::Consumer consumer{store, consumer_options(settings, part, stream)};
        consumer.on<TicketIssued>(note_effect);
        consumer.run(part.stop);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace stela::chaos

#include "chaos/roles.hpp"

#include "chaos/mutant_relay.hpp"
#include "support/process.hpp"

#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox/relay.hpp>

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

constexpr int streams = 150;

class Stderr final : public LogSink {
 public:
  void write(const LogEntry& entry) noexcept override {
    std::fprintf(stderr, "%d %.*s: %.*s\n", getpid(), static_cast<int>(entry.name.size()),
                 entry.name.data(), static_cast<int>(entry.message.size()), entry.message.data());
  }
};

Stderr& log_to_stderr() {
  static Stderr log;
  return log;
}

/// What was acknowledged to an appending process.
class Ledger {
 public:
  Ledger(const Settings& settings, int number)
      : file_{open((settings.folder + "/ledger." + std::to_string(number)).c_str(),
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)} {}
  ~Ledger() { close(file_); }

  void note(std::int64_t sequence, std::int64_t serial) {
    const std::string line = std::to_string(sequence) + ' ' + std::to_string(serial) + '\n';
    if (write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::runtime_error{"the ledger can't be written"};
    }
  }

 private:
  int file_;
};

void note_effect(Transaction& transaction, const Recorded<TicketIssued>& ticket) {
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(sqlite::handle(transaction),
                     "INSERT INTO effects (id, stream, version, sequence) VALUES (?1, ?2, ?3, ?4)",
                     -1, &statement, nullptr);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owned{statement, sqlite3_finalize};
  const std::string id = ticket.id().to_string();
  sqlite3_bind_text(statement, 1, id.c_str(), -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(statement, 2, ticket.stream().name().c_str(), -1, SQLITE_TRANSIENT);
  sqlite3_bind_int64(statement, 3, ticket.version().value());
  sqlite3_bind_int64(statement, 4, ticket.sequence().value());
  if (sqlite3_step(statement) != SQLITE_DONE) {
    throw std::runtime_error{sqlite3_errmsg(sqlite::handle(transaction))};
  }
}

RelayOptions relay_options(const Settings& settings) {
  return {.lease_ttl = 2'000ms,
          .lease_renew = 500ms,
          .heartbeat_ttl = 2'000ms,
          .batch_size = settings.batch_size,
          .window = settings.batch_size * 4,
          .idle_backoff = 200ms,
          .claim_ttl = 2'000ms,
          .publish_timeout = 700ms,
          .retry_backoff = 50ms,
          .retry_backoff_max = 500ms,
          .max_attempts = 1'000'000};
}

nats::PublisherOptions publisher_options(const Settings& settings, const std::string& url) {
  return {.url = url,
          .prefix = "shop",
          .stream = "SHOP",
          .fence = settings.fence,
          .ensure_stream = true,
          // So short that nothing can rely on it.
          .stream_options = {.duplicate_window = 1s},
          .connect_timeout = 500ms,
          .publish_timeout = 700ms};
}

}  // namespace

sqlite::Store open_shop(const Settings& settings) {
  return sqlite::open(
      settings.database(),
      {.durability = settings.relaxed ? sqlite::Durability::relaxed : sqlite::Durability::full,
       .busy_timeout = 2'000ms,
       .checkpoint_pages = 500,
       .log = &log_to_stderr()});
}

OutboxOptions outbox_options(const Settings& settings) {
  return {.fence = settings.fence};
}

void append(const Settings& settings, int number, const std::stop_token& stop) {
  auto store = open_shop(settings);
  const Outbox outbox{store, outbox_options(settings)};
  Ledger ledger{settings, number};
  std::mt19937_64 random{settings.seed * 1'000 + static_cast<std::uint64_t>(getpid())};
  std::int64_t serial = std::int64_t{getpid()} * 10'000'000;
  while (!stop.stop_requested()) {
    const StreamId stream = StreamId::of("ticket", std::to_string(random() % streams));
    UnitOfWork unit{store};
    const std::int64_t first = serial;
    const auto count = static_cast<std::int64_t>(1 + random() % 4);
    for (std::int64_t i = 0; i < count; ++i) {
      unit.append(stream, ExpectedVersion::any(),
                  TicketIssued{serial++, std::string(random() % 200, 'x')});
    }
    if (random() % 4 == 0) unit.append(stream, ExpectedVersion::any(), TicketSeen{serial});
    try {
      const AppendResult result = unit.commit();
      for (std::int64_t i = 0; i < count; ++i) ledger.note(result.first.value() + i, first + i);
    } catch (const Error& e) {
      if (!e.is_retryable()) throw;
    }
    test::is_stopped_within(std::chrono::microseconds{random() % 12'000}, stop);
  }
}

void relay(const Settings& settings, const std::string& url, const std::stop_token& stop) {
  auto store = open_shop(settings);
  Outbox outbox{store, outbox_options(settings)};
  nats::Publisher publisher{publisher_options(settings, url)};
  if (settings.mutant != mutants::Mutant::none) {
    return run_mutant(outbox, publisher, relay_options(settings), settings.mutant, stop);
  }
  Relay{outbox, publisher, relay_options(settings)}.run(stop);
}

void consume(const Settings& settings, const std::string& url, const std::stop_token& stop) {
  auto store = sqlite::open(settings.effects(),
                            {.durability = sqlite::Durability::relaxed, .log = &log_to_stderr()});
  std::vector<std::thread> threads;
  for (const std::string& stream : settings.streams()) {
    threads.emplace_back([&, stream] {
      nats::Consumer consumer{store,
                              {.url = url,
                               .connect_timeout = 500ms,
                               .name = "effects",
                               .stream = stream,
                               .ack_wait = 2'000ms,
                               .idle_wait = 200ms,
                               .retry_backoff = 50ms,
                               .retry_backoff_max = 500ms,
                               .gap_patience = 120'000ms}};
      consumer.on<TicketIssued>(note_effect);
      consumer.run(stop);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace stela::chaos

// Relaying from PostgreSQL to a real nats-server, against bare libpq and nats.c that do the same.
#include "bench.hpp"
#include "flushing_server.hpp"
#include "postgres_shop.hpp"
#include "raw_nats_relay.hpp"
#include "raw_postgres.hpp"
#include "support/process.hpp"

#include <stela/nats/publisher.hpp>

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace stela::bench {
namespace {

constexpr int window = 2'000;
constexpr int batch_size = 500;

constexpr const char* next_sql =
    "SELECT e.sequence, e.version, e.published_before, e.recorded_at, e.event_id, s.name, k.type, "
    "coalesce(e.correlation_id, ''), e.payload FROM stela.outbox_messages AS m "
    "JOIN stela.events AS e ON e.sequence = m.sequence "
    "JOIN stela.streams AS s ON s.stream = m.stream "
    "JOIN stela.event_kinds AS k ON k.kind = e.kind "
    "WHERE m.partition = 0 AND m.sequence > $1::bigint ORDER BY m.sequence LIMIT $2::bigint";

std::int64_t integer_of(const PGresult* rows, int row, int column) {
  std::uint64_t number = 0;
  for (int i = 0; i < 8; ++i) {
    number = number << 8U | static_cast<unsigned char>(PQgetvalue(rows, row, column)[i]);
  }
  return static_cast<std::int64_t>(number);
}

std::string_view bytes_of(const PGresult* rows, int row, int column) {
  return {PQgetvalue(rows, row, column), static_cast<std::size_t>(PQgetlength(rows, row, column))};
}

/// As RawOutbox, of a store on PostgreSQL. Marking is one round trip.
class RawPostgresOutbox {
 public:
  explicit RawPostgresOutbox(const std::string& url) : database_{url} {
    database_.execute("SET search_path = stela");
    database_.prepare("next", next_sql);
    database_.prepare("begin", "BEGIN");
    database_.prepare("remove",
                      "DELETE FROM outbox_messages WHERE partition = 0 AND sequence BETWEEN $1 AND "
                      "$2");
    database_.prepare(
        "batch",
        "INSERT INTO outbox_batches (partition, last_sequence, first_sequence, count, "
        "published_at, first_broker, last_broker) "
        "VALUES (0, $2, $1, $3, 1795000000000000, $1, $2)");
    database_.prepare("advance",
                      "UPDATE outbox_partitions SET published_through = $1, broker_sequence = $1, "
                      "published = published + $2 WHERE partition = 0");
    database_.prepare("commit", "COMMIT");
  }

  template <class F>
  int next(int limit, F&& use) {
    const auto rows = database_.query({"next", {std::to_string(behind_), std::to_string(limit)}});
    for (int row = 0; row < PQntuples(rows.get()); ++row) {
      const RawEvent event{.sequence = integer_of(rows.get(), row, 0),
                           .version = integer_of(rows.get(), row, 1),
                           .published_before = integer_of(rows.get(), row, 2),
                           .recorded_at = integer_of(rows.get(), row, 3),
                           .id = bytes_of(rows.get(), row, 4),
                           .stream = bytes_of(rows.get(), row, 5),
                           .type = bytes_of(rows.get(), row, 6),
                           .correlation = bytes_of(rows.get(), row, 7),
                           .payload = bytes_of(rows.get(), row, 8)};
      behind_ = event.sequence;
      use(event);
    }
    return PQntuples(rows.get());
  }
  std::int64_t last_read() const noexcept { return behind_; }

  void mark(std::int64_t first, std::int64_t last, std::int64_t count) {
    const std::string from = std::to_string(first);
    const std::string to = std::to_string(last);
    const std::string many = std::to_string(count);
    const std::array<RawPostgres::Step, 5> steps{{{"begin"},
                                                  {"remove", {from, to}, {0, 0}},
                                                  {"batch", {from, to, many}, {0, 0, 0}},
                                                  {"advance", {to, many}, {0, 0}},
                                                  {"commit"}}};
    database_.run(steps);
  }

  RawPostgres& database() noexcept { return database_; }

 private:
  RawPostgres database_;
  std::int64_t behind_ = 0;
};

std::string first_cell(const std::string& url, const char* sql) {
  RawPostgres database{url};
  database.prepare("one", sql);
  return std::string{bytes_of(database.query({"one"}).get(), 0, 0)};
}

std::string store_id_in(const std::string& url) {
  return first_cell(url, "SELECT value FROM stela.stela_facts WHERE name = 'store_id'");
}

// --- a backlog

/// All events wait again, and nobody has relayed them.
void refill_postgres_outbox(const std::string& url) {
  RawPostgres database{url};
  database.execute(
      "BEGIN; SET search_path = stela; TRUNCATE outbox_batches, outbox_messages, outbox_workers; "
      "INSERT INTO outbox_messages (partition, sequence, stream) "
      "SELECT 0, sequence, stream FROM events ORDER BY sequence; "
      "UPDATE outbox_partitions SET owner = NULL, lease_until = 0, published_through = 0, "
      "broker_sequence = 0, broker_id = '', flight_through = 0, flight_count = 0, "
      "removed = 0, drained_through = 0, published = 0; COMMIT");
  database.execute("VACUUM ANALYZE stela.outbox_messages");
}

class Relaying : public Subject {
 public:
  Relaying(const test::NatsServer& nats, std::string url) : nats_{nats}, url_{std::move(url)} {}

  void prepare() final {
    tear_down();
    broker_.make_stream();
    refill_postgres_outbox(url_);
    set_up();
  }
  void run() final {
    relay();
    const std::string waiting =
        first_cell(url_, "SELECT count(*)::text FROM stela.outbox_messages");
    const std::string events = first_cell(url_, "SELECT count(*)::text FROM stela.events");
    const std::string arrived = std::to_string(broker_.messages_in_stream());
    if (waiting == "0" && events == arrived) return;
    throw std::runtime_error{arrived + " of " + events + " messages arrived, and " + waiting +
                             " wait"};
  }

 protected:
  virtual void set_up() = 0;
  virtual void relay() = 0;
  virtual void tear_down() = 0;

  const test::NatsServer& nats_;
  const std::string url_;

 private:
  RawNats broker_{nats_.url()};
};

/// A store's relay, with the parts that it needs.
struct RelayParts {
  RelayParts(const std::string& url, Publisher& publisher, const RelayOptions& options)
      : store{postgres::open(url)}, outbox{store}, relay{outbox, publisher, options} {}

  Store store;
  Outbox outbox;
  Relay relay;
};

class StelaRelaying final : public Relaying {
 public:
  using Relaying::Relaying;

 private:
  void set_up() override {
    publisher_ = std::make_unique<nats::Publisher>(
        nats::PublisherOptions{.url = nats_.url(), .fence = Fence::stream});
    parts_ = std::make_unique<RelayParts>(url_, *publisher_,
                                          RelayOptions{.batch_size = batch_size, .window = window});
  }
  void relay() override { parts_->relay.run_once(); }
  void tear_down() override {
    parts_.reset();
    publisher_.reset();
  }

  std::unique_ptr<nats::Publisher> publisher_;
  std::unique_ptr<RelayParts> parts_;
};

class BareRelaying final : public Relaying {
 public:
  using Relaying::Relaying;

 private:
  void set_up() override {
    raw_ = std::make_unique<RawNats>(nats_.url(), RawNatsOptions{.window = window});
  }
  void relay() override {
    RawPostgresOutbox outbox{url_};
    RawEnvelope envelope{store_id_in(url_), true};
    relay_bare(
        outbox, envelope, *raw_,
        {.chained = true, .batch_size = batch_size, .batches_in_flight = window / batch_size});
  }
  void tear_down() override { raw_.reset(); }

  std::unique_ptr<RawNats> raw_;
};

void measure_backlog(Bench& bench) {
  const std::string name = "postgres.relay.backlog";
  if (!bench.begins(name)) return;
  const test::PostgresServer server{postgres_server_options};
  const test::NatsServer nats;
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  {
    PostgresShop shop{server.url()};
    for (int i = 0, streams = bench.sized(5, 300, 1000); i < streams; ++i) {
      PostgresAppend{shop.store, samples, static_cast<std::size_t>(i), 100}.run();
    }
  }
  RawPostgres{server.url()}.execute("VACUUM ANALYZE");
  const double events =
      std::stod(first_cell(server.url(), "SELECT count(*)::text FROM stela.events"));
  StelaRelaying stela{nats, server.url()};
  BareRelaying bare{nats, server.url()};
  const std::array<Subject*, 2> subjects{&stela, &bare};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(7), .operations = 1, .slices = 1, .warm_up = 1});
  bench.add_rate({.name = name,
                  .what = in_digits(events) + " messages, mode stream, against bare libpq and "
                                              "nats.c with the same chain",
                  .mode = "full",
                  .place = Place::disk,
                  .unit = "messages/s",
                  .goal = at_least(0.85)},
                 rounds[0], rounds[1], events);
}

// --- one event, from one process to another

/// Bytes from a process that relays, one for each message that the broker has stored.
class Acknowledgements {
 public:
  Acknowledgements() {
    if (pipe(ends_.data()) != 0) throw std::runtime_error{"no pipe"};
  }
  ~Acknowledgements() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Acknowledgements(const Acknowledgements&) = delete;
  Acknowledgements& operator=(const Acknowledgements&) = delete;

  void send() const {
    if (write(ends_[1], "", 1) != 1) throw std::runtime_error{"nobody reads"};
  }
  void take() const {
    constexpr int two_minutes = 120'000;
    pollfd end{ends_[0], POLLIN, 0};
    char byte = 0;
    if (poll(&end, 1, two_minutes) == 1 && read(ends_[0], &byte, 1) == 1) return;
    throw std::runtime_error{"nothing came for two minutes"};
  }

 private:
  std::array<int, 2> ends_{};
};

class TellingPublisher final : public Publisher, private AnswerSink {
 public:
  TellingPublisher(const nats::PublisherOptions& options, const Acknowledgements& told)
      : inner_{options}, told_{told} {}

  bool can(Fence fence) const noexcept override { return inner_.can(fence); }
  void connect(std::uint64_t session, AnswerSink& sink) override {
    sink_ = &sink;
    inner_.connect(session, *this);
  }
  void disconnect() noexcept override { inner_.disconnect(); }
  void publish(const OutgoingMessage& message) override { inner_.publish(message); }
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override {
    inner_.read_back(request, partition, from);
  }
  void probe(std::uint64_t request) override { inner_.probe(request); }
  void flush() override { inner_.flush(); }

 private:
  void take(Answer answer) override {
    if (answer.kind == Answer::Kind::stored) told_.send();
    sink_->take(std::move(answer));
  }

  nats::Publisher inner_;
  AnswerSink* sink_ = nullptr;
  const Acknowledgements& told_;
};

void relay_for_ever(const std::string& url, const std::string& nats, const Acknowledgements& told) {
  RawNats{nats}.make_stream();
  TellingPublisher publisher{{.url = nats, .fence = Fence::stream}, told};
  RelayParts parts{url, publisher, {}};
  parts.relay.run({});
}

/// Listens for a notification with each commit: reads, publishes, and marks what was stored.
void relay_bare_for_ever(const std::string& url, const std::string& nats,
                         const Acknowledgements& told) {
  RawNats raw{nats, {.send_asap = true}};
  raw.make_stream();
  RawPostgresOutbox outbox{url};
  RawEnvelope envelope{store_id_in(url), true};
  outbox.database().execute("LISTEN appended");
  for (std::uint64_t sent = 0;;) {
    std::int64_t first = 0;
    const int count = outbox.next(100, [&](const RawEvent& event) {
      if (first == 0) first = event.sequence;
      raw.publish(envelope.make(event));
    });
    if (count == 0) {
      outbox.database().wait_for_notification();
      continue;
    }
    raw.wait_for(sent += static_cast<std::uint64_t>(count));
    for (int i = 0; i < count; ++i) told.send();
    outbox.mark(first, outbox.last_read(), count);
  }
}

/// Appends an event, which isn't measured, and waits until the broker has it.
class OneByOne final : public Subject {
 public:
  OneByOne(std::function<void()> append, const Acknowledgements& told)
      : append_{std::move(append)}, told_{told} {}

  void prepare() override {
    // Whoever relays has fallen asleep before the next one.
    pass_until(due_);
    append_();
  }
  void run() override {
    told_.take();
    due_ = std::chrono::steady_clock::now() + std::chrono::milliseconds{2};
  }

 private:
  const std::function<void()> append_;
  const Acknowledgements& told_;
  std::chrono::steady_clock::time_point due_ = {};
};

void measure_delivery(Bench& bench, const std::string& name, const test::PostgresServer& server,
                      const test::PostgresServer& bare_server, Place place, Goal goal) {
  const test::NatsServer nats;
  const test::NatsServer bare_nats;
  const Acknowledgements told;
  const Acknowledgements bare_told;
  { PostgresShop{bare_server.url()}; }
  // Before this process has threads.
  const test::Process relay{[&] { relay_for_ever(server.url(), nats.url(), told); }};
  const test::Process bare_relay{
      [&] { relay_bare_for_ever(bare_server.url(), bare_nats.url(), bare_told); }};
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  PostgresShop shop{server.url()};
  PostgresShop bare_shop{bare_server.url()};
  PostgresAppend append{shop.store, samples, 1, 1};
  PostgresAppend same{bare_shop.store, samples, 1, 1};
  RawPostgres notifier{bare_server.url()};
  OneByOne ours{[&] { append.run(); }, told};
  // The append is Stela's on both sides, as it isn't measured.
  OneByOne raw{[&] {
                 same.run();
                 notifier.execute("NOTIFY appended");
               },
               bare_told};
  const std::array<Subject*, 2> subjects{&ours, &raw};
  const int operations = bench.sized(10, 300, 1000);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(9),
                                            .operations = operations,
                                            .slices = bench.sized(2, 10, 10),
                                            .warm_up = bench.sized(5, 100, 200)});
  bench.report().add({.name = name,
                      .what = "p50 from the commit of one event in a process to its "
                              "acknowledgement in another that relays, against bare LISTEN and "
                              "publish",
                      .mode = "full",
                      .place = place,
                      .unit = "µs",
                      .stela = p50s_of(rounds[0]).median / 1000,
                      .raw = p50s_of(rounds[1]).median / 1000,
                      .ratio = p50_ratio(rounds[0], rounds[1]),
                      .goal = goal});
}

void measure_deliveries(Bench& bench) {
  if (const char* const name = "postgres.delivery.p50"; bench.begins(name)) {
    const test::PostgresServer server{postgres_server_options};
    const test::PostgresServer bare_server{postgres_server_options};
    measure_delivery(bench, name, server, bare_server, Place::disk, at_most(1.3));
  }
  if (const char* const name = "speed.delivery.p50.100us"; bench.begins(name)) {
    constexpr std::chrono::microseconds flush{100};
    const FlushingServer server{flush};
    const FlushingServer bare_server{flush};
    measure_delivery(bench, name, server.server(), bare_server.server(), Place::tmpfs,
                     at_most(1.8));
  }
}

}  // namespace

void postgres_relay_figures(Bench& bench) {
  measure_deliveries(bench);
  measure_backlog(bench);
}

}  // namespace stela::bench

// What the inbox costs a consumer.
#include "bench.hpp"
#include "raw_nats_relay.hpp"
#include "shop.hpp"
#include "support/tcp_proxy.hpp"

#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace stela::bench {
namespace {

constexpr int batch_size = 100;
constexpr int batches_ahead = 10;
constexpr const char* sales_sql =
    "CREATE TABLE sales (sale INTEGER PRIMARY KEY, product TEXT NOT NULL, quantity INTEGER NOT "
    "NULL) STRICT";
constexpr const char* sale_sql = "INSERT INTO sales (product, quantity) VALUES (?1, ?2)";

/// Consumes the whole stream into an empty database.
class Consuming : public Subject {
 public:
  Consuming(std::string url, const std::filesystem::path& place, std::int64_t messages)
      : url_{std::move(url)}, place_{place}, messages_{messages} {}

  void prepare() final {
    tear_down();
    folder_ = std::make_unique<Folder>(place_);
    ++round_;
    set_up();
  }
  void run() final {
    consume();
    const auto sales = RawDatabase{path(), {}}.integer("SELECT count(*) FROM sales");
    if (sales != handled()) throw std::runtime_error{std::to_string(sales) + " effects"};
  }

 protected:
  virtual void set_up() = 0;
  virtual void consume() = 0;
  virtual void tear_down() = 0;
  /// How many of the messages are to have their effect.
  virtual std::int64_t handled() const { return messages_; }

  std::string path() const { return folder_->file("effects.db"); }
  /// Of the durable consumer at the server: one that hasn't seen anything.
  std::string name(const char* prefix) const { return prefix + std::to_string(round_); }

  const std::string url_;
  const std::filesystem::path place_;
  const std::int64_t messages_;

 private:
  std::unique_ptr<Folder> folder_;
  int round_ = 0;
};

class StelaConsuming final : public Consuming {
 public:
  /// So many messages fail whenever they are tried: all those of one stream, if there are any.
  StelaConsuming(std::string url, const std::filesystem::path& place, std::int64_t messages,
                 std::int64_t failing = 0)
      : Consuming{std::move(url), place, messages}, failing_{failing} {}

 private:
  void set_up() override {
    store_.reset(new Store{sqlite::open(path())});
    store_->transact([this](Transaction& transaction) {
      sqlite3_exec(sqlite::handle(transaction), sales_sql, nullptr, nullptr, nullptr);
      sale_ = std::make_unique<RawStatement>(sqlite::handle(transaction), sale_sql);
    });
    nats::ConsumerOptions options;
    options.url = url_;
    options.name = name(failing_ > 0 ? "failing" : "stela");
    options.batch_size = batch_size;
    if (failing_ > 0) options.max_attempts = 1;
    consumer_ = std::make_unique<nats::Consumer>(*store_, options);
    consumer_->on<LineAdded>([this](Transaction&, const Recorded<LineAdded>& line) {
      check_stream(line.stream());
      sell(line->product, line->quantity);
    });
    consumer_->on<LineDropped>([this](Transaction&, const Recorded<LineDropped>& line) {
      check_stream(line.stream());
      sell(line->product, -line->quantity);
    });
  }
  void check_stream(const StreamId& stream) const {
    if (failing_ > 0 && stream == failing_stream_) throw std::runtime_error{"not this one"};
  }
  std::int64_t handled() const override { return messages_ - failing_; }
  void sell(std::string_view product, std::int64_t quantity) {
    sale_->bind_text(1, product);
    sale_->bind(2, quantity);
    sale_->run();
  }
  void consume() override {
    std::stop_source stop;
    std::int64_t done = 0;
    consumer_->on_tick([&](const nats::ConsumerTick& tick) {
      if ((done += tick.handled) >= handled()) stop.request_stop();
    });
    consumer_->run(stop.get_token());
  }
  void tear_down() override {
    consumer_.reset();
    sale_.reset();
    store_.reset();
  }

  const std::int64_t failing_;
  const StreamId failing_stream_ = basket_id(0).stream();
  std::unique_ptr<Store> store_;
  std::unique_ptr<RawStatement> sale_;
  std::unique_ptr<nats::Consumer> consumer_;
};

/// Fetches, inserts the event's id and its effect, and acknowledges after the commit. The next
/// batches are on their way meanwhile, if it is to ask ahead.
class BareConsuming final : public Consuming {
 public:
  BareConsuming(std::string url, const std::filesystem::path& place, std::int64_t messages,
                int ahead = 0)
      : Consuming{std::move(url), place, messages}, batches_ahead_{ahead} {}

 private:
  struct Parts {
    Parts(const std::string& path, const std::string& url)
        : database{path, {.full_sync = true}}, nats{url} {
      database.execute(sales_sql);
      database.execute("CREATE TABLE inbox (event_id BLOB PRIMARY KEY) STRICT, WITHOUT ROWID");
    }
    ~Parts() { natsSubscription_Destroy(subscription); }

    RawDatabase database;
    RawNats nats;
    natsSubscription* subscription = nullptr;
  };

  void set_up() override { parts_ = std::make_unique<Parts>(path(), url_); }
  void consume() override {
    subscribe();
    RawStatement begin{parts_->database, "BEGIN IMMEDIATE"};
    RawStatement commit{parts_->database, "COMMIT"};
    RawStatement insert{parts_->database, "INSERT INTO inbox VALUES (?1) ON CONFLICT DO NOTHING"};
    RawStatement sale{parts_->database, sale_sql};
    std::array<natsMsg*, batch_size> batch{};
    for (int i = 0; i < batches_ahead_; ++i) ask();
    for (std::int64_t handled = 0; handled < messages_;) {
      const int count = fetch(batch);
      begin.run();
      for (int i = 0; i < count; ++i) handle(batch[static_cast<std::size_t>(i)], insert, sale);
      commit.run();
      for (int i = 0; i < count; ++i) acknowledge(batch[static_cast<std::size_t>(i)]);
      handled += count;
    }
    check_nats(natsConnection_Flush(parts_->nats.connection()), "flushing");
  }
  void subscribe() {
    jsConsumerConfig config;
    jsConsumerConfig_Init(&config);
    const std::string durable = name("bare");
    config.Durable = durable.c_str();
    config.AckPolicy = js_AckExplicit;
    check_nats(js_AddConsumer(nullptr, parts_->nats.context(), NatsPlace::stream, &config, nullptr,
                              nullptr),
               "making the consumer");
    inbox_ = "_INBOX.bare." + durable;
    next_ = std::string{"$JS.API.CONSUMER.MSG.NEXT."} + NatsPlace::stream + '.' + durable;
    check_nats(natsConnection_SubscribeSync(&parts_->subscription, parts_->nats.connection(),
                                            inbox_.c_str()),
               "subscribing");
  }
  void ask() {
    const std::string request = "{\"batch\":" + std::to_string(batch_size) + "}";
    natsConnection_PublishRequestString(parts_->nats.connection(), next_.c_str(), inbox_.c_str(),
                                        request.c_str());
  }
  int fetch(std::array<natsMsg*, batch_size>& batch) {
    ask();
    int count = 0;
    while (count < batch_size) {
      natsMsg*& message = batch[static_cast<std::size_t>(count)];
      if (natsSubscription_NextMsg(&message, parts_->subscription, count == 0 ? 5'000 : 50) !=
          NATS_OK) {
        break;
      }
      ++count;
    }
    if (count == 0) throw std::runtime_error{"no messages come"};
    return count;
  }
  void handle(natsMsg* message, RawStatement& insert, RawStatement& sale) {
    const char* id = nullptr;
    natsMsgHeader_Get(message, "ce-id", &id);
    const auto bytes = Uuid::parse(id)->bytes();
    insert.bind_blob(1, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    insert.run();
    if (sqlite3_changes(parts_->database) == 0) return;
    const char* type = nullptr;
    natsMsgHeader_Get(message, "ce-type", &type);
    const std::string_view payload{natsMsg_GetData(message),
                                   static_cast<std::size_t>(natsMsg_GetDataLength(message))};
    if (type == LineAdded::event_type.name) {
      codec::decode(Codec::json, payload, added_);
      sale.bind_text(1, added_.product);
      sale.bind(2, added_.quantity);
    } else {
      codec::decode(Codec::json, payload, dropped_);
      sale.bind_text(1, dropped_.product);
      sale.bind(2, -dropped_.quantity);
    }
    sale.run();
  }
  void acknowledge(natsMsg* message) {
    natsConnection_PublishString(parts_->nats.connection(), natsMsg_GetReply(message), "+ACK");
    natsMsg_Destroy(message);
  }
  void tear_down() override { parts_.reset(); }

  const int batches_ahead_;
  std::unique_ptr<Parts> parts_;
  std::string inbox_;
  std::string next_;
  LineAdded added_;
  LineDropped dropped_;
};

/// A stream at the server with so many messages of each basket.
void publish_baskets(const test::NatsServer& server, const Folder& folder, std::size_t streams,
                     std::size_t each) {
  RawNats{server.url()}.make_stream();
  const std::string path = folder.file("shop.db");
  make_shop(path, {.streams = streams, .events_each = each});
  refill_outbox(path);
  RawNats nats{server.url()};
  relay_bare(path, nats, {.chained = true});
}

void measure(Bench& bench, Figure figure, Subject& stela, Subject& raw, std::int64_t messages) {
  const std::array<Subject*, 2> subjects{&stela, &raw};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(7), .operations = 1, .slices = 1, .warm_up = 1});
  figure.mode = "full";
  figure.place = Place::disk;
  figure.unit = "messages/s";
  bench.add_rate(std::move(figure), rounds[0], rounds[1], static_cast<double>(messages));
}

void measure_inbox(Bench& bench) {
  const std::string name = "consumer.inbox.100";
  if (!bench.begins(name)) return;
  const test::NatsServer server;
  const Folder folder{bench.places().disk};
  const std::size_t streams = bench.sized<std::size_t>(100, 2'000, 5'000);
  const std::size_t each = 10;
  publish_baskets(server, folder, streams, each);
  const auto messages = static_cast<std::int64_t>(streams * each);
  StelaConsuming stela{server.url(), bench.places().disk, messages};
  BareConsuming bare{server.url(), bench.places().disk, messages};
  measure(bench,
          {.name = name,
           .what = "a consumer with inbox, batches of 100, against a bare loop that fetches, "
                   "inserts and acknowledges",
           .goal = at_least(0.75)},
          stela, bare, messages);
}

void measure_consumers_lines(Bench& bench) {
  for (const int round_trip : {5, 20, 100}) {
    const std::string name = "consumer.line." + std::to_string(round_trip) + "ms";
    if (!bench.begins(name)) continue;
    const test::NatsServer server;
    test::TcpProxy line{server.port()};
    line.delay(std::chrono::milliseconds{round_trip} / 2);
    const Folder folder{bench.places().disk};
    const std::size_t streams = bench.sized<std::size_t>(100, 2'000, 5'000);
    const std::size_t each = 10;
    publish_baskets(server, folder, streams, each);
    const auto messages = static_cast<std::int64_t>(streams * each);
    StelaConsuming stela{line.url(), bench.places().disk, messages};
    BareConsuming bare{line.url(), bench.places().disk, messages, batches_ahead};
    measure(bench,
            {.name = name,
             .what = "the same at the end of a line, against a bare loop that asks for " +
                     std::to_string(batches_ahead) + " batches ahead"},
            stela, bare, messages);
  }
}

void measure_one_parked(Bench& bench) {
  const std::string name = "consumer.one_parked.100";
  if (!bench.begins(name)) return;
  const test::NatsServer server;
  const Folder folder{bench.places().disk};
  const std::size_t streams = bench.sized<std::size_t>(100, 1'000, 1'000);
  const std::size_t each = bench.sized<std::size_t>(10, 50, 50);
  publish_baskets(server, folder, streams, each);
  const auto messages = static_cast<std::int64_t>(streams * each);
  StelaConsuming failing{server.url(), bench.places().disk, messages,
                         static_cast<std::int64_t>(each)};
  StelaConsuming well{server.url(), bench.places().disk, messages};
  measure(bench,
          {.name = name,
           .what = "a consumer that has parked one stream of " +
                   in_digits(static_cast<double>(streams)) + ", against one that handles all",
           .goal = at_least(0.9)},
          failing, well, messages);
}

}  // namespace

void nats_consumer_figures(Bench& bench) {
  measure_inbox(bench);
  measure_consumers_lines(bench);
  measure_one_parked(bench);
}

}  // namespace stela::bench

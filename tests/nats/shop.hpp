// A shop that publishes its orders to a real nats-server, and a second database that consumes them.
#pragma once

#include "support/nats_server.hpp"
#include "support/orders.hpp"
#include "support/process.hpp"
#include "support/raw_sqlite.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <string>

namespace stela::test {

/// The publishing side.
class Shop {
 public:
  Shop(const std::string& database, const std::string& url, const OutboxOptions& options = {},
       nats::PublisherOptions broker = {}, const RelayOptions& relaying = {},
       const sqlite::Options& storing = {})
      : store{sqlite::open(database, storing)},
        outbox{store, options},
        publisher{with_defaults(std::move(broker), url, outbox.fence())},
        relay{outbox, publisher, relaying} {}

  void place(const std::string& key, std::int64_t total_cents = 100,
             const std::string& customer = "jane") {
    auto order = Order::place(Id<Order>::from(key), customer, total_cents);
    orders.save(order);
  }
  void note(const std::string& key) {
    auto order = orders.load(Id<Order>::from(key));
    order.note("gift");
    orders.save(order);
  }
  void ship(const std::string& key) {
    auto order = orders.load(Id<Order>::from(key));
    order.ship("dhl");
    orders.save(order);
  }
  /// One more event of the stream parcel-1, which no aggregate is kept of.
  void send_parcel(const std::string& stream = "parcel-1") {
    UnitOfWork unit{store};
    unit.append(StreamId::parse(stream), ExpectedVersion::any(), OrderShipped{"dhl"});
    unit.commit();
  }
  RelayTick publish() { return relay.run_once(); }

  Store store;
  Outbox outbox;
  nats::Publisher publisher;
  Relay relay;
  Repository<Order> orders{store};

 private:
  static nats::PublisherOptions with_defaults(nats::PublisherOptions options,
                                              const std::string& url, Fence fence) {
    options.url = url;
    options.prefix = "shop";
    options.stream = "SHOP";
    options.fence = fence;
    options.ensure_stream = true;
    return options;
  }
};

/// The consuming side: a table of what was handled, in order.
class Ledger {
 public:
  explicit Ledger(const std::string& database, const sqlite::Options& options = {})
      : store{sqlite::open(database, options)} {
    store.transact([](Transaction& transaction) {
      RawSqlite{sqlite::handle(transaction)}.run(
          "CREATE TABLE IF NOT EXISTS ledger (entry INTEGER PRIMARY KEY, line TEXT NOT NULL)");
    });
  }

  static void write(Transaction& transaction, const std::string& line) {
    RawSqlite{sqlite::handle(transaction)}.run("INSERT INTO ledger (line) VALUES ('" + line + "')");
  }
  template <class E>
  static void note(Transaction& transaction, const Recorded<E>& recorded) {
    write(transaction, recorded.stream().name() + '@' + std::to_string(recorded.version().value()) +
                           ' ' + std::string{E::event_type.name});
  }
  std::vector<std::string> lines() {
    return RawSqlite{sqlite::path(store)}.rows("SELECT line FROM ledger ORDER BY entry");
  }

  Store store;
};

}  // namespace stela::test

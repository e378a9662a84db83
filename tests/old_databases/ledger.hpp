// What a consumer of orders does: it writes a line for each message, once.
#pragma once

#include "old_databases/domain.hpp"
#include "support/raw_sqlite.hpp"

#include <stela/eventstore.hpp>
#include <stela/eventstore/sqlite_handle.hpp>
#include <stela/framework/error.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace stela::test::old {

inline void make_ledger(Store& store) {
  store.transact([](Transaction& transaction) {
    RawSqlite{sqlite::handle(transaction)}.run(
        "CREATE TABLE ledger (entry INTEGER PRIMARY KEY, line TEXT NOT NULL)");
  });
}

inline std::vector<std::string> ledger_of(const Store& store) {
  return RawSqlite{sqlite::path(store)}.rows("SELECT line FROM ledger ORDER BY line");
}

inline nats::ConsumerOptions consumer_options(const std::string& url) {
  using namespace std::chrono_literals;
  return {.url = url,
          .name = "billing",
          .stream = "SHOP",
          .retry_backoff = 20ms,
          .retry_backoff_max = 50ms,
          .max_attempts = 1'000};
}

template <class E>
void write_line(Transaction& transaction, const Recorded<E>& recorded) {
  RawSqlite{sqlite::handle(transaction)}.run("INSERT INTO ledger (line) VALUES ('" +
                                             recorded.stream().name() + '@' +
                                             std::to_string(recorded.version().value()) + "')");
}

/// `fails`: with the order "fragile" for now, and with "poison" for good.
inline void handle_orders(nats::Consumer& consumer, bool fails) {
  consumer.on<OrderPlaced>([fails](Transaction& transaction, const Recorded<OrderPlaced>& e) {
    if (fails && e.stream().key() == "fragile") throw std::runtime_error{"not yet"};
    if (fails && e.stream().key() == "poison") throw CorruptEvent{"never"};
    write_line(transaction, e);
  });
  consumer.on<OrderShipped>(write_line<OrderShipped>);
}

/// Publishes what waits in the outbox of `database`.
inline void publish(const std::string& database, const std::string& url, const Clock& clock) {
  auto store = sqlite::open(database, {.clock = &clock});
  Outbox outbox{store};
  nats::Publisher publisher{{.url = url,
                             .prefix = "shop",
                             .stream = "SHOP",
                             .fence = outbox.fence(),
                             .ensure_stream = true}};
  Relay{outbox, publisher}.run_once();
}

}  // namespace stela::test::old

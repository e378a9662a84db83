// A consumer with everything in its inbox that one can have, and the database that it consumed
// from, before anything was published: a test publishes it again.
#include "nats/jetstream.hpp"
#include "old_databases/ledger.hpp"
#include "old_databases/scene.hpp"
#include "support/nats_server.hpp"

#include <stdexcept>

namespace stela::test::old {
namespace {

using namespace std::chrono_literals;

void make_source(const Scene& scene) {
  {
    auto store =
        sqlite::open(scene.database(), scene.options(Codec::json, sqlite::Durability::full));
    const Outbox outbox{store};
    for (const char* const key : {"good", "fragile", "poison", "late"}) {
      place(store, key);
      ship(store, key);
    }
    ship(store, "late");
  }
  scene.freeze();
}

/// The second message of the order "late" goes missing, and a foreign one is among the others.
void spoil(JetStream& broker) {
  const auto messages = broker.messages("SHOP");
  broker.erase("SHOP", messages.at(7).sequence);
  broker.publish("shop.hello", "there");
}

bool has_all(nats::InboxOperations& inbox) {
  return inbox.parked().size() == 3 && inbox.gaps().size() == 1;
}

}  // namespace

void make_consumer(const std::filesystem::path& out) {
  const NatsServer server;
  const Scene source{out, "source"};
  make_source(source);
  publish(source.database(), server.url(), source.clock);
  JetStream broker{server.url()};
  spoil(broker);

  Scene scene{out, "consumer"};
  {
    auto store =
        sqlite::open(scene.database(), scene.options(Codec::json, sqlite::Durability::full));
    make_ledger(store);
    nats::Consumer consumer{store, consumer_options(server.url())};
    handle_orders(consumer, true);
    nats::InboxOperations inbox{store};
    for (int i = 0; !has_all(inbox); ++i) {
      if (i == 1'000) throw std::runtime_error{"the inbox lacks something"};
      (void)consumer.run_once();
      scene.clock.advance(10ms);
    }
    inbox.retry(inbox.parked().front().number);
  }
  scene.freeze();
}

}  // namespace stela::test::old

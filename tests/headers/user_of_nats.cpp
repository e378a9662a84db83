// A service as users write it, which publishes to NATS and consumes from there.
#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <thread>

struct Placed {
  static constexpr stela::EventType event_type{"order.placed", 1, stela::should_publish};
  std::string customer;
  std::int64_t cents = 0;
  std::optional<double> discount;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(cents), CEREAL_NVP(discount));
  }
};
struct Packed {
  static constexpr stela::EventType event_type{"parcel.packed", 1, stela::local};
  std::string customer;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer));
  }
};

void publish(stela::Outbox& outbox, const std::stop_token& stop) {
  stela::nats::Publisher broker{
      {.url = "nats://127.0.0.1:4222", .prefix = "shop", .stream = "SHOP", .ensure_stream = true}};
  stela::Relay{outbox, broker, {.batch_size = 500}}.run(stop);
}

void consume(stela::Store& store, const std::stop_token& stop) {
  stela::nats::Consumer consumer{
      store, {.url = "nats://127.0.0.1:4222", .name = "shipping", .stream = "SHOP"}};
  consumer.on<Placed>([](stela::Transaction& transaction, const stela::Recorded<Placed>& placed) {
    stela::UnitOfWork unit{transaction};
    unit.append(stela::StreamId::of("parcel", placed.stream().key()), stela::ExpectedVersion::any(),
                Packed{placed->customer});
    unit.commit();
  });
  consumer.run(stop);
  stela::nats::InboxOperations inbox{store};
  for (const stela::nats::ConsumerStatus& one : inbox.status()) {
    if (one.parked_since) throw std::runtime_error{one.consumer};
  }
}

int main() {
  auto store = stela::sqlite::open("shop.db");
  stela::Outbox outbox{store};
  const std::jthread publishing{[&](const std::stop_token& stop) { publish(outbox, stop); }};
  const std::jthread consuming{[&](const std::stop_token& stop) { consume(store, stop); }};
}

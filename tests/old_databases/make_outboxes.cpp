// Outboxes in every state that a message, a partition or a worker can be in.
#include "old_databases/scene.hpp"
#include "outbox/file_broker.hpp"

#include <stela/outbox.hpp>

#include <set>
#include <utility>

namespace stela::test::old {
namespace {

using namespace std::chrono_literals;

/// A store with an outbox, a broker and what an operator does.
struct Shop {
  Shop(Scene& scene_, Codec codec, sqlite::Durability durability, const OutboxOptions& options)
      : scene{scene_},
        store{sqlite::open(scene.database(), scene.options(codec, durability))},
        outbox{made(options)},
        operations{store, {.who = "ann"}} {}

  /// What was appended before there is an outbox isn't published.
  Outbox made(OutboxOptions options) {
    make_history(store);
    options.enable = Enable::from_now;
    return Outbox{store, options};
  }
  /// A relay that comes, does so many rounds, and hands over.
  void relay(const RelayOptions& options, int rounds = 1);

  Scene& scene;
  Store store;
  Outbox outbox;
  OutboxOperations operations;
  /// Orders whose messages the broker never takes, and those that it doesn't take for now.
  std::set<std::string, std::less<>> too_large;
  std::set<std::string, std::less<>> rejected;
};

/// A relay with a connection of its own to the broker.
struct Worker {
  Worker(Shop& shop, const RelayOptions& options)
      : broker{shop.scene.broker(), shop.outbox.fence()}, relay{shop.outbox, broker, options} {
    broker.refuse = [&shop](const OutgoingMessage& message) -> std::optional<Answer::Kind> {
      if (shop.too_large.contains(message.event.stream.key())) return Answer::Kind::refused;
      if (shop.rejected.contains(message.event.stream.key())) return Answer::Kind::rejected;
      return std::nullopt;
    };
  }

  FileBroker broker;
  Relay relay;
};

void Shop::relay(const RelayOptions& options, int rounds) {
  Worker worker{*this, options};
  for (int i = 0; i < rounds; ++i) {
    worker.relay.run_once();
    scene.clock.advance(2s);
  }
}

/// The key of an order in the partition `p01` to `p04` of four; another for each `nth`.
std::string key_in(int partition, int nth) {
  for (int n = 0;; ++n) {
    std::string key = std::to_string(n);
    if (PartitionId::of("order-" + key, 4) == PartitionId{partition} && nth-- == 0) return key;
  }
}

GlobalSequence first_of(Store& store, const std::string& key) {
  for (const StoredEvent& event : store.read_stream(StreamId::parse("order-" + key))) {
    return event.sequence;
  }
  throw std::runtime_error{"there is no order " + key};
}

/// Parks by every reason, gives up in both ways, and has something sent again.
void set_aside(Shop& shop) {
  const std::string refused = key_in(1, 0);
  const std::string given_up = key_in(1, 1);
  const std::string retried = key_in(1, 2);
  shop.too_large = {refused, given_up, retried};
  for (const std::string& key : shop.too_large) {
    place(shop.store, key);
    ship(shop.store, key);
  }
  shop.rejected = {key_in(2, 0)};
  place(shop.store, key_in(2, 0));
  shop.relay({.worker = "early", .retry_jitter = 0, .max_attempts = 2}, 2);
  shop.operations.discard({.stream = "order-" + given_up});

  shop.too_large.insert(key_in(1, 3));
  place(shop.store, key_in(1, 3));
  shop.operations.republish({.to = first_of(shop.store, "again")});
  shop.relay({.worker = "skipping", .on_poison = OnPoison::skip}, 2);
}

/// Leaves two partitions stopped.
void halt(Shop& shop) {
  for (const int partition : {3, 4}) {
    shop.too_large.insert(key_in(partition, 0));
    place(shop.store, key_in(partition, 0));
    place(shop.store, key_in(partition, 1));
  }
  shop.relay({.worker = "halting", .on_poison = OnPoison::stop});
}

/// What operators and applications did last, while messages were in flight.
void do_at_last(Shop& shop) {
  shop.operations.resize(8);
  for (int partition = 1; partition <= 4; ++partition) {
    for (const int nth : {5, 6}) place(shop.store, key_in(partition, nth));
  }
  shop.operations.adopt(PartitionId{4});
  shop.operations.republish(
      {.from = first_of(shop.store, key_in(1, 4)), .to = first_of(shop.store, key_in(1, 4))});
  shop.operations.retry({.stream = "order-" + key_in(1, 2)});
}

}  // namespace

void make_leased(const std::filesystem::path& out) {
  Scene scene{out, "leased"};
  Shop shop{scene, Codec::json, sqlite::Durability::full, {.partition_count = 1}};
  place(shop.store, "again");
  shop.relay({.worker = "first"});
  shop.operations.resize(4);
  place(shop.store, key_in(1, 4));
  shop.relay({.worker = "second"}, 2);
  shop.operations.sync(true);
  set_aside(shop);
  halt(shop);

  scene.advance_to(frozen_after - 50s);
  Worker dead{shop, {.worker = "dead"}};
  dead.relay.run_once();
  scene.advance_to(frozen_after - 8s);
  Worker one{shop, {.worker = "one", .retry_jitter = 0}};
  Worker two{shop, {.worker = "two", .retry_jitter = 0}};
  for (int i = 0; i < 6; ++i) {
    (i % 2 == 0 ? one : two).relay.run_once();
    scene.clock.advance(1s);
  }
  shop.rejected = {key_in(2, 1)};
  place(shop.store, key_in(2, 1));
  one.relay.run_once();
  two.relay.run_once();
  place(shop.store, key_in(2, 2));
  scene.advance_to(frozen_after);
  place(shop.store, key_in(1, 7));
  place(shop.store, key_in(1, 8));
  bool is_frozen = false;
  const auto freeze = [&] {
    if (std::exchange(is_frozen, true)) return;
    do_at_last(shop);
    scene.freeze();
  };
  one.broker.after_storing = freeze;
  two.broker.after_storing = freeze;
  one.relay.run_once();
  two.relay.run_once();
  if (!is_frozen) throw std::runtime_error{"nothing was in flight"};
}

void make_claimed(const std::filesystem::path& out) {
  Scene scene{out, "claimed"};
  Shop shop{scene,
            Codec::portable_binary,
            sqlite::Durability::relaxed,
            {.fence = Fence::none, .leasing = false}};
  Projections projections{shop.store};
  projections.add_inline(Listing<Inline>{});
  for (const char* const key : {"a", "b", "c"}) place(shop.store, key);
  shop.too_large = {"b"};
  shop.rejected = {"late"};
  shop.relay({.worker = "first"});
  ship(shop.store, "b");
  place(shop.store, "late");
  shop.relay({.worker = "second", .retry_jitter = 0});

  scene.advance_to(frozen_after - 50s);
  Worker dead{shop, {.worker = "dead"}};
  dead.relay.run_once();
  scene.advance_to(frozen_after - 1s);
  Worker one{shop, {.worker = "one", .batch_size = 2, .retry_jitter = 0}};
  one.relay.run_once();
  scene.advance_to(frozen_after);
  for (int i = 0; i < 6; ++i) place(shop.store, "d" + std::to_string(i));
  shop.operations.republish({.stream = "order-a"});
  shop.operations.republish({.stream = "order-c"});
  bool is_frozen = false;
  one.broker.after_storing = [&] {
    if (std::exchange(is_frozen, true)) return;
    for (const char* const key : {"e", "f"}) place(shop.store, key);
    scene.freeze();
  };
  one.relay.run_once();
  if (!is_frozen) throw std::runtime_error{"nothing was in flight"};
}

void make_halted(const std::filesystem::path& out) {
  Scene scene{out, "halted"};
  {
    Shop shop{scene, Codec::json, sqlite::Durability::relaxed, {.fence = Fence::subject}};
    shop.too_large = {"b"};
    for (const char* const key : {"a", "b", "c"}) place(shop.store, key);
    shop.relay({.worker = "halting", .on_poison = OnPoison::stop});
    ship(shop.store, "a");
  }
  scene.freeze();
}

}  // namespace stela::test::old

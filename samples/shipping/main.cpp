// The shipping service: a program of its own, with its own database. It knows nothing of the shop
// but its published messages.
//
// shipping FILE NATS-URL KEYS [--again]
//
// KEYS is the shop's key store, which this service only reads.
#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/nats/consumer.hpp>
#include <stela/nats/inbox.hpp>
#include <stela/privacy.hpp>
#include <stela/projections.hpp>

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>

namespace shipping {

struct Customer {
  static constexpr std::string_view category = "customer";
};

/// The part of the shop's message that it needs; other fields are ignored.
struct OrderShipped {
  static constexpr stela::EventType event_type{"order.shipped", 1, stela::local};
  stela::Id<Customer> customer;
  stela::Personal<std::string> name;
  stela::Personal<std::string> address;
  std::string sku;
  std::int64_t quantity = 0;
  std::string carrier;
  static constexpr auto subject = &OrderShipped::customer;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(customer), CEREAL_NVP(name), CEREAL_NVP(address), CEREAL_NVP(sku),
            CEREAL_NVP(quantity), CEREAL_NVP(carrier));
  }
};

struct ParcelPacked {
  static constexpr stela::EventType event_type{"parcel.packed", 1, stela::local};
  std::string carrier;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(carrier));
  }
};
struct ParcelCollected {
  static constexpr stela::EventType event_type{"parcel.collected", 1, stela::local};
};
struct CarrierReminded {
  static constexpr stela::EventType event_type{"parcel.carrier_reminded", 1, stela::local};
};

struct NotCollected {
  static constexpr stela::TimerType timer_type{"not_collected", 1};
};

/// The carrier is reminded each day until it collects the parcel.
class Collection {
 public:
  static constexpr stela::ProcessType process_type{"collection"};
  using Events = stela::EventSet<ParcelPacked, ParcelCollected>;
  using Timers = stela::TimerSet<NotCollected>;

  void react(stela::Process& process, const stela::Recorded<ParcelPacked>& packed) {
    process.set(NotCollected{}, stela::Every{std::chrono::hours{24},
                                             packed.recorded_at() + std::chrono::hours{24}});
  }
  void react(stela::Process& process, const stela::Recorded<ParcelCollected>&) {
    process.clear<NotCollected>();
  }
  void due(stela::Process& process, const NotCollected&) {
    process.unit().append(stela::StreamId::parse(process.key()), stela::ExpectedVersion::any(),
                          CarrierReminded{});
  }
};

/// Packs a parcel for the order without checking for an existing one: the inbox calls this once per
/// event, or else a second parcel would go out. The table keeps the address sealed.
void pack(stela::Transaction& transaction, const stela::Recorded<OrderShipped>& shipped) {
  stela::Sql sql{transaction};
  sql.execute(
      "CREATE TABLE IF NOT EXISTS parcels (number INTEGER PRIMARY KEY, order_id TEXT, "
      "name TEXT, address TEXT, carrier TEXT, correlation TEXT) STRICT");
  sql.execute(
      "INSERT INTO parcels (order_id, name, address, carrier, correlation) "
      "VALUES (?1, ?2, ?3, ?4, ?5)",
      shipped.stream().key(), shipped->name, shipped->address, shipped->carrier,
      shipped.record().correlation_id());
  stela::UnitOfWork unit{transaction};
  unit.append(stela::StreamId::of("parcel", shipped.stream().key()), stela::ExpectedVersion::none(),
              ParcelPacked{shipped->carrier});
  unit.commit();
  std::cout << "parcel for " << shipped->name.value_or("(forgotten)") << ", "
            << shipped->address.value_or("(forgotten)") << ", with " << shipped->carrier << ": "
            << shipped->quantity << " × " << shipped->sku << "  ("
            << shipped.record().correlation_id() << ")\n";
}

/// Forgets this service's position in the stream, so that it reads everything again.
void forget_position(const std::string& file) {
  auto store = stela::sqlite::open(file);
  stela::nats::InboxOperations{store}.forget("shipping", "SHOP");
}

/// Throws if it received nothing for another reason than an empty stream.
void require_reading(stela::Store& store) {
  const auto reader = stela::nats::InboxOperations{store}.status().front().readers.front();
  if (reader.is_paused) throw std::runtime_error{"messages may wait: an operator paused it"};
  if (!reader.error.empty()) throw std::runtime_error{"messages wait: " + reader.error};
}

/// Handles the messages that exist now.
void run(const std::string& file, const std::string& url, const std::string& key_store) {
  auto keys = stela::open_keys(key_store, {.create = false, .read_only = true});
  auto store = stela::sqlite::open(file, {.log = &stela::log_to_stderr()});
  stela::Projections projections{store};
  projections.add_process(Collection{});
  stela::nats::Consumer consumer{store,
                                 {.url = url, .name = "shipping", .stream = "SHOP", .keys = &keys}};
  consumer.on<OrderShipped>(pack);
  stela::nats::ConsumerTick sum;
  for (;;) {
    const stela::nats::ConsumerTick tick = consumer.run_once();
    sum.handled += tick.handled;
    sum.ignored += tick.ignored;
    sum.duplicates += tick.duplicates;
    if (tick.failed > 0 || tick.parked > 0)
      throw std::runtime_error{"a message couldn't be handled"};
    if (!tick.reader.empty())
      throw std::runtime_error{"'" + tick.reader + "' reads the stream already"};
    if (tick == stela::nats::ConsumerTick{}) break;
  }
  require_reading(store);
  stela::Runner{projections}.run_once();
  // The count ends at 10,000.
  const auto collection = stela::TimerOperations{store}.processes().front();
  std::cout << "to be collected by the carrier: "
            << (collection.is_pending_lower_bound ? "at least " : "") << collection.pending << '\n';
  std::cout << "handled " << sum.handled << ", of no interest " << sum.ignored << ", seen before "
            << sum.duplicates << '\n';
}

}  // namespace shipping

int main(int argc, char** argv) {
  const bool again = argc == 5 && std::string{argv[4]} == "--again";
  if (argc != 4 && !again) {
    std::cerr << "usage: shipping FILE NATS-URL KEYS [--again]\n";
    return 2;
  }
  try {
    if (again) shipping::forget_position(argv[1]);
    shipping::run(argv[1], argv[2], argv[3]);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "shipping: " << e.what() << '\n';
    return 1;
  }
}

// A program of somebody else's: an event, its aggregate, a store, the outbox, a projector.
#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/outbox.hpp>
#include <stela/projections.hpp>
#ifdef CONSUMER_USES_NATS
#include <stela/nats/publisher.hpp>
#endif
#ifdef CONSUMER_USES_TOOL
#include <stela/tool/run.hpp>
#endif

#include <iostream>

namespace {

struct Deposited {
  static constexpr stela::EventType event_type{"account.deposited", 1, stela::should_publish};
  std::int64_t cents = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents));
  }
};

struct Balance {
  std::int64_t cents = 0;
  void apply(const Deposited& event) { cents += event.cents; }
};

class Account : public stela::AggregateRoot<Balance, stela::EventSet<Deposited>> {
 public:
  static constexpr std::string_view category = "account";
  using AggregateRoot::AggregateRoot;
  void deposit(std::int64_t cents) { record(Deposited{cents}); }
};

class Balances {
 public:
  static constexpr stela::ProjectorType projector_type{"balances", 1};
  using Events = stela::EventSet<Deposited>;

  void create(stela::ReadModel& model) {
    model.execute("CREATE TABLE {balances} (account TEXT PRIMARY KEY, cents INTEGER) STRICT");
  }
  void project(stela::ReadModel& model, const stela::Recorded<Deposited>& deposited) {
    model.execute(
        "INSERT INTO {balances} VALUES (?1, ?2) "
        "ON CONFLICT DO UPDATE SET cents = cents + excluded.cents",
        deposited.stream().name(), deposited->cents);
  }
};

}  // namespace

int main(int argc, char** argv) {
#ifdef CONSUMER_USES_TOOL
  if (argc > 1) return stela::tool::run(argc, argv);
#else
  (void)argc;
  (void)argv;
#endif
  auto store = stela::sqlite::open_in_memory();
  stela::Outbox outbox{store};
  stela::Repository<Account> accounts{store};
  Account account{stela::Id<Account>::from("1")};
  account.deposit(100);
  accounts.save(account);
#ifdef CONSUMER_USES_NATS
  const stela::nats::Publisher broker{{.url = "nats://127.0.0.1:4222"}};
#endif
  try {
    accounts.load(stela::Id<Account>::from("2"));
    return 1;
  } catch (const stela::AggregateNotFound&) {
    // Caught although it was thrown in another library.
  }
  std::cout << "stela " << stela::version() << " " << (stela::version() == STELA_VERSION) << ": "
            << accounts.load(stela::id_of(account)).state().cents << '\n';
}

// A small bank, in three releases that are built from this file: RELEASE 1 knows the first version
// of an event; 2 knows the second as well, and records the first; 3 records the second.
// `rollout_program LOCATION… deposit FIRST COUNT` deposits into accounts of these numbers, and
// ends. `rollout_program LOCATION… run` drives projections until it is killed. LOCATION is the path
// of an SQLite file, or the URL of a PostgreSQL database and a schema.
#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/projections.hpp>

#include <cereal/types/string.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;

struct DepositedV1 {
  static constexpr stela::EventType event_type{"account.deposited", 1, stela::local};
  std::int64_t cents = 0;
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(cents));
  }
};

#if RELEASE == 1
using Deposited = DepositedV1;
std::string currency_of(const Deposited&) {
  return "EUR";
}
Deposited deposit_of(std::int64_t cents) {
  return {cents};
}
#else
struct Deposited {
  static constexpr stela::EventType event_type{"account.deposited", 2, stela::local};
  using Supersedes = DepositedV1;
  static Deposited upcast(DepositedV1 old) { return {old.cents, "EUR"}; }
#if RELEASE == 2
  static DepositedV1 record_as(const Deposited& event) {
    return {event.cents};
  }
#endif
  std::int64_t cents = 0;
  std::string currency;
  template <class Archive>
  void serialize(Archive& ar) {
    ar(CEREAL_NVP(cents), CEREAL_NVP(currency));
  }
};
std::string currency_of(const Deposited& event) {
  return event.currency;
}
Deposited deposit_of(std::int64_t cents) {
  return {cents, RELEASE == 2 ? "EUR" : "USD"};
}
#endif

struct Thanked {
  static constexpr stela::EventType event_type{"account.thanked", 1, stela::local};
  template <class Archive>
  void serialize(Archive&) {}
};

struct Balance {
  std::int64_t cents = 0;
  void apply(const Deposited& event) { cents += event.cents; }
  void apply(const Thanked&) {}
};
class Account : public stela::AggregateRoot<Balance, stela::EventSet<Deposited, Thanked>> {
 public:
  static constexpr std::string_view category = "account";
  using AggregateRoot::AggregateRoot;
  void deposit(std::int64_t cents) { record(deposit_of(cents)); }
  void thank() { record(Thanked{}); }
};

/// Without a unique key: what is handled twice shows.
class Deposits {
 public:
  static constexpr stela::ProjectorType projector_type{"deposits", 1};
  using Events = stela::EventSet<Deposited>;

  void create(stela::ReadModel& model) {
    model.execute(
        "CREATE TABLE {deposits} (account TEXT NOT NULL, cents INTEGER NOT NULL, currency TEXT NOT "
        "NULL)");
  }
  void project(stela::ReadModel& model, const stela::Recorded<Deposited>& e) {
    model.execute("INSERT INTO {deposits} VALUES (?1, ?2, ?3)", e.stream().key(), e->cents,
                  currency_of(*e));
  }
};

struct Thanks {
  static constexpr stela::ReactionType reaction_type{"thanks"};
  using Events = stela::EventSet<Deposited>;
  void react(stela::UnitOfWork& unit, const stela::Recorded<Deposited>& e) {
    unit.load(stela::Id<Account>::of(e.stream())).thank();
  }
};

void deposit(stela::Store& store, int first, int count) {
  stela::Repository<Account> accounts{store};
  for (int number = first; number < first + count; ++number) {
    Account account{stela::Id<Account>::from(std::to_string(number))};
    account.deposit(number);
    accounts.save(account);
  }
}

void run(stela::Store& store) {
  stela::Projections projections{store};
  projections.add(Deposits{});
  projections.add_reaction(Thanks{}, {.start = stela::ReactionStart::beginning});
  stela::Runner{projections, {.lease_ttl = 500ms, .idle_backoff = 20ms}}.run({});
}

int work(const std::vector<std::string>& words) {
  const bool is_on_server = stela::is_on_server(words.at(0));
  auto store = is_on_server ? stela::postgres::open(words.at(0), {.schema = words.at(1)})
                            : stela::sqlite::open(words.at(0));
  const std::size_t at = is_on_server ? 2 : 1;
  if (words.at(at) == "run") return run(store), 0;
  deposit(store, std::stoi(words.at(at + 1)), std::stoi(words.at(at + 2)));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return work({words + 1, words + count});
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}

// A file as users write it: an aggregate with twenty events, its repository, and a projector. It is
// compiled to see what that costs.
#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/projections.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bank {

struct Opened {
  static constexpr stela::EventType event_type{"account.opened", 1, stela::should_publish};
  std::string owner;
  std::string currency;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(owner), CEREAL_NVP(currency));
  }
};
struct Renamed {
  static constexpr stela::EventType event_type{"account.renamed", 1, stela::local};
  std::string owner;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(owner));
  }
};
struct AddressChanged {
  static constexpr stela::EventType event_type{"account.address_changed", 1, stela::local};
  std::string street;
  std::string city;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(street), CEREAL_NVP(city));
  }
};
struct LimitRaised {
  static constexpr stela::EventType event_type{"account.limit_raised", 1, stela::local};
  std::int64_t cents = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents));
  }
};
struct LimitLowered {
  static constexpr stela::EventType event_type{"account.limit_lowered", 1, stela::local};
  std::int64_t cents = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents));
  }
};
struct Deposited {
  static constexpr stela::EventType event_type{"account.deposited", 1, stela::local};
  std::int64_t cents = 0;
  std::optional<std::string> reference;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(reference));
  }
};
struct Withdrawn {
  static constexpr stela::EventType event_type{"account.withdrawn", 1, stela::local};
  std::int64_t cents = 0;
  std::optional<std::string> reference;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(reference));
  }
};
struct TransferredIn {
  static constexpr stela::EventType event_type{"account.transferred_in", 1, stela::should_publish};
  std::int64_t cents = 0;
  std::string from;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(from));
  }
};
struct TransferredOut {
  static constexpr stela::EventType event_type{"account.transferred_out", 1, stela::should_publish};
  std::int64_t cents = 0;
  std::string to;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(to));
  }
};
struct FeeCharged {
  static constexpr stela::EventType event_type{"account.fee_charged", 1, stela::local};
  std::int64_t cents = 0;
  std::string reason;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(reason));
  }
};
struct InterestPaid {
  static constexpr stela::EventType event_type{"account.interest_paid", 1, stela::local};
  std::int64_t cents = 0;
  double rate = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(cents), CEREAL_NVP(rate));
  }
};
struct CardIssued {
  static constexpr stela::EventType event_type{"account.card_issued", 1, stela::local};
  std::string card;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(card));
  }
};
struct CardBlocked {
  static constexpr stela::EventType event_type{"account.card_blocked", 1, stela::local};
  std::string card;
  bool is_stolen = false;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(card), CEREAL_NVP(is_stolen));
  }
};
struct HolderAdded {
  static constexpr stela::EventType event_type{"account.holder_added", 1, stela::local};
  std::string name;
  std::vector<std::string> rights;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(name), CEREAL_NVP(rights));
  }
};
struct HolderRemoved {
  static constexpr stela::EventType event_type{"account.holder_removed", 1, stela::local};
  std::string name;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(name));
  }
};
struct NoteAdded {
  static constexpr stela::EventType event_type{"account.note_added", 1, stela::local};
  std::string author;
  std::string text;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(author), CEREAL_NVP(text));
  }
};
struct Frozen {
  static constexpr stela::EventType event_type{"account.frozen", 1, stela::local};
  std::string reason;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(reason));
  }
};
struct Thawed {
  static constexpr stela::EventType event_type{"account.thawed", 1, stela::local};
  std::string reason;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(reason));
  }
};
struct Audited {
  static constexpr stela::EventType event_type{"account.audited", 1, stela::local};
  std::string auditor;
  std::map<std::string, std::int64_t> totals;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(auditor), CEREAL_NVP(totals));
  }
};
struct Closed {
  static constexpr stela::EventType event_type{"account.closed", 1, stela::should_publish};
  std::string reason;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(reason));
  }
};

using Events = stela::EventSet<Opened, Renamed, AddressChanged, LimitRaised, LimitLowered,
                               Deposited, Withdrawn, TransferredIn, TransferredOut, FeeCharged,
                               InterestPaid, CardIssued, CardBlocked, HolderAdded, HolderRemoved,
                               NoteAdded, Frozen, Thawed, Audited, Closed>;

struct State {
  std::int64_t cents = 0;
  bool is_closed = false;
  void apply(const Opened&) {}
  void apply(const Renamed&) {}
  void apply(const AddressChanged&) {}
  void apply(const LimitRaised&) {}
  void apply(const LimitLowered&) {}
  void apply(const Deposited& e) { cents += e.cents; }
  void apply(const Withdrawn& e) { cents -= e.cents; }
  void apply(const TransferredIn& e) { cents += e.cents; }
  void apply(const TransferredOut& e) { cents -= e.cents; }
  void apply(const FeeCharged& e) { cents -= e.cents; }
  void apply(const InterestPaid& e) { cents += e.cents; }
  void apply(const CardIssued&) {}
  void apply(const CardBlocked&) {}
  void apply(const HolderAdded&) {}
  void apply(const HolderRemoved&) {}
  void apply(const NoteAdded&) {}
  void apply(const Frozen&) {}
  void apply(const Thawed&) {}
  void apply(const Audited&) {}
  void apply(const Closed&) { is_closed = true; }
};

class Account : public stela::AggregateRoot<State, Events> {
 public:
  static constexpr std::string_view category = "account";
  using AggregateRoot::AggregateRoot;
  void open(std::string owner) { record(Opened{std::move(owner), "EUR"}); }
  void deposit(std::int64_t cents) { record(Deposited{cents, {}}); }
  void close(std::string reason) {
    if (!state().is_closed) record(Closed{std::move(reason)});
  }
};

class Balances {
 public:
  static constexpr stela::ProjectorType projector_type{"balances", 1};
  using Events = bank::Events;

  void create(stela::ReadModel& model) {
    model.execute("CREATE TABLE {balances} (id TEXT PRIMARY KEY, cents BIGINT NOT NULL)");
  }
  void project(stela::ReadModel& model, const stela::Recorded<Opened>& e) {
    model.execute("INSERT INTO {balances} VALUES (?1, 0)", e.stream().key());
  }
  void project(stela::ReadModel&, const stela::Recorded<Renamed>&) {}
  void project(stela::ReadModel&, const stela::Recorded<AddressChanged>&) {}
  void project(stela::ReadModel&, const stela::Recorded<LimitRaised>&) {}
  void project(stela::ReadModel&, const stela::Recorded<LimitLowered>&) {}
  void project(stela::ReadModel& model, const stela::Recorded<Deposited>& e) {
    add(model, e.stream().key(), e->cents);
  }
  void project(stela::ReadModel& model, const stela::Recorded<Withdrawn>& e) {
    add(model, e.stream().key(), -e->cents);
  }
  void project(stela::ReadModel& model, const stela::Recorded<TransferredIn>& e) {
    add(model, e.stream().key(), e->cents);
  }
  void project(stela::ReadModel& model, const stela::Recorded<TransferredOut>& e) {
    add(model, e.stream().key(), -e->cents);
  }
  void project(stela::ReadModel& model, const stela::Recorded<FeeCharged>& e) {
    add(model, e.stream().key(), -e->cents);
  }
  void project(stela::ReadModel& model, const stela::Recorded<InterestPaid>& e) {
    add(model, e.stream().key(), e->cents);
  }
  void project(stela::ReadModel&, const stela::Recorded<CardIssued>&) {}
  void project(stela::ReadModel&, const stela::Recorded<CardBlocked>&) {}
  void project(stela::ReadModel&, const stela::Recorded<HolderAdded>&) {}
  void project(stela::ReadModel&, const stela::Recorded<HolderRemoved>&) {}
  void project(stela::ReadModel&, const stela::Recorded<NoteAdded>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Frozen>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Thawed>&) {}
  void project(stela::ReadModel&, const stela::Recorded<Audited>&) {}
  void project(stela::ReadModel& model, const stela::Recorded<Closed>& e) {
    model.execute("DELETE FROM {balances} WHERE id = ?1", e.stream().key());
  }

 private:
  static void add(stela::ReadModel& model, std::string_view account, std::int64_t cents) {
    model.execute("UPDATE {balances} SET cents = cents + ?2 WHERE id = ?1", account, cents);
  }
};

std::int64_t serve(stela::Store& store) {
  stela::Projections projections{store};
  projections.add_inline(Balances{});
  stela::Repository<Account> accounts{store};
  Account account{stela::Id<Account>::generate()};
  account.open("Ada");
  account.deposit(100);
  accounts.save(account);
  return accounts.load(stela::id_of(account)).state().cents;
}

}  // namespace bank

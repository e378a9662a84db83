#include "framework/extern_templates/branch.hpp"

namespace bank {

void serve(stela::EventStore& store, const stela::Id<Account>& id, const std::string& owner,
           std::int64_t cents) {
  stela::Repository<Account> accounts{store};
  Account account{id};
  account.open(owner);
  accounts.save(account);

  stela::UnitOfWork unit{store};
  unit.load(id).pay(cents);
  unit.append(stela::StreamId::of("bank", "rates"), stela::ExpectedVersion::any(), RateQuoted{25});
  unit.commit();
}

std::int64_t balance(stela::EventStore& store, const stela::Id<Account>& id) {
  return stela::Repository<Account>{store}.load(id).state().cents;
}

Opened read(stela::Codec codec, const stela::StoredEvent& event) {
  Opened read;
  stela::EventDecoder<stela::EventSet<Opened>>{codec}.decode(
      event, [&](Opened&& opened) { read = std::move(opened); });
  return read;
}

}  // namespace bank

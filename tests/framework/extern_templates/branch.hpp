// Who uses the domain, in a file that compiles no codec.
#pragma once

#include "framework/extern_templates/bank.hpp"

namespace bank {

/// Opens the account through a repository and pays to it in a unit of work, with a quote beside it.
void serve(stela::EventStore& store, const stela::Id<Account>& id, const std::string& owner,
           std::int64_t cents);
std::int64_t balance(stela::EventStore& store, const stela::Id<Account>& id);
/// What the stored event says, also that of the first version.
Opened read(stela::Codec codec, const stela::StoredEvent& event);

}  // namespace bank

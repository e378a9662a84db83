#include "ledger/participants.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>

namespace stela::ledger {

void Participants::add(TransactionParticipant& participant) {
  all_.push_back(&participant);
  of_users_.push_back(&participant);
  has_user_code_.store(true, std::memory_order_relaxed);
}

void Participants::add(database::DataParticipant& participant) {
  all_.push_back(&participant);
  of_data_.push_back(&participant);
}

void Participants::remove(const Participant& participant) noexcept {
  std::erase(all_, &participant);
  std::erase(of_users_, &participant);
  std::erase(of_data_, &participant);
  has_user_code_.store(!of_users_.empty(), std::memory_order_relaxed);
}

void Participants::refuse_second(std::string_view name) const {
  for (const Participant* const attached : all_) {
    if (attached->name() != name) continue;
    throw UsageError{"'" + std::string{name} +
                     "' takes part in the appends of this store already; attach it once"};
  }
}

void Participants::forget() const noexcept {
  for (Participant* const participant : all_) participant->forget();
}

bool Participants::is_required(const Participant& participant) const {
  const auto known = std::find_if(required_.begin(), required_.end(), [&](const Required& one) {
    return one.name == participant.name();
  });
  if (known == required_.end()) return false;
  if (participant.accepts(known->detail)) return true;
  throw UsageError{"participant '" + known->name + "' is registered in this database as '" +
                   known->detail + "', and this process brings '" +
                   std::string{participant.detail()} + "'"};
}

void Participants::check() const {
  for (const Required& required : required_) {
    const bool is_here = std::any_of(all_.begin(), all_.end(), [&](const Participant* one) {
      return one->name() == required.name && one->accepts(required.detail);
    });
    if (is_here) continue;
    if (required.name == suspension)
      throw StoreSuspended{required.detail + "; nothing was written"};
    throw ParticipantMissing{"this database requires '" + required.name + "' (" + required.detail +
                             ") to take part in every append, and this process hasn't attached "
                             "it; nothing was written"};
  }
}

}  // namespace stela::ledger

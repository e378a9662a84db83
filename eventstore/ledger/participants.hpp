// Who takes part in the appends of a store, and who must.
#pragma once

#include "database/data_participant.hpp"

#include <stela/framework/event_store.hpp>

#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::ledger {

/// Threads: `has_user_code` any; the rest that which leads the writers.
class Participants {
 public:
  struct Required {
    std::string name;
    std::string detail;
  };

  void add(TransactionParticipant& participant);
  void add(database::DataParticipant& participant);
  void remove(const Participant& participant) noexcept;
  /// UsageError if one of this name is there.
  void refuse_second(std::string_view name) const;

  /// Code of the user's runs in appends, which must be exclusive then.
  bool has_user_code() const noexcept { return has_user_code_.load(std::memory_order_relaxed); }
  std::span<TransactionParticipant* const> of_users() const noexcept { return of_users_; }
  std::span<database::DataParticipant* const> of_data() const noexcept { return of_data_; }
  /// What they know of the database no longer holds.
  void forget() const noexcept;

  /// What the database requires.
  void require(std::vector<Required> required) { required_ = std::move(required); }
  /// Whether the database has this one. UsageError if it has it in a form that this isn't.
  bool is_required(const Participant& participant) const;
  /// ParticipantMissing if one that is required isn't here.
  void check() const;

 private:
  std::atomic<bool> has_user_code_{false};
  std::vector<Participant*> all_;
  // Which of the two each of them is.
  std::vector<TransactionParticipant*> of_users_;
  std::vector<database::DataParticipant*> of_data_;
  std::vector<Required> required_;
};

}  // namespace stela::ledger

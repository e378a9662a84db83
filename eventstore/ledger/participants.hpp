// The participants in a store's appends, attached and required.
#pragma once

#include "database/data_participant.hpp"

#include <stela/framework/event_store.hpp>

#include <atomic>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::ledger {

/// Required while appends are suspended. Its detail says why.
inline constexpr std::string_view suspension = "suspended";

/// Threads: `has_user_code` any; the rest belongs to the leader of the writers.
class Participants {
 public:
  struct Required {
    std::string name;
    std::string detail;
  };

  void add(TransactionParticipant& participant);
  void add(database::DataParticipant& participant);
  /// One that only must be there: it adds nothing to appends.
  void add(Participant& participant) { all_.push_back(&participant); }
  void remove(const Participant& participant) noexcept;
  /// UsageError if one of this name is attached.
  void refuse_second(std::string_view name) const;

  /// User code runs in appends, which must then be exclusive.
  bool has_user_code() const noexcept { return has_user_code_.load(std::memory_order_relaxed); }
  std::span<TransactionParticipant* const> of_users() const noexcept { return of_users_; }
  std::span<database::DataParticipant* const> of_data() const noexcept { return of_data_; }
  /// Their cached state of the database is no longer valid.
  void forget() const noexcept;

  /// The participants that the database requires.
  void require(std::vector<Required> required) { required_ = std::move(required); }
  /// Whether the database requires this one. UsageError if it requires it in another form.
  bool is_required(const Participant& participant) const;
  /// ParticipantMissing if a required one isn't attached; StoreSuspended if appends are suspended.
  void check() const;

 private:
  std::atomic<bool> has_user_code_{false};
  std::vector<Participant*> all_;
  // The attached participants, by type.
  std::vector<TransactionParticipant*> of_users_;
  std::vector<database::DataParticipant*> of_data_;
  std::vector<Required> required_;
};

}  // namespace stela::ledger

// The part of writing that both engines share.
#pragma once

#include "commit_queue.hpp"
#include "database/data_participant.hpp"
#include "database/database.hpp"
#include "database/owner.hpp"
#include "ledger/participants.hpp"

#include <stela/framework/event_store.hpp>
#include <stela/framework/uuid.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace stela::ledger {

/// How many migrations of each module this process knows.
using KnownModules = std::map<std::string, std::int64_t, std::less<>>;

/// The writers' queue, the participants of appends, and metrics. An engine adds how it carries out
/// a group. Threads: any number at once; protected members belong to the leader.
class Writer {
 public:
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  const Conventions& conventions() const noexcept { return conventions_; }
  /// UsageError from within a transaction of this store, and of a store that only reads.
  void refuse_unless_writable() const;

  /// This process knows `migrations` of `module`; it is refused once the database requires more.
  void know_schema(std::string_view module, std::size_t migrations);
  /// `prepare` runs in the transaction that registers it. UsageError if a participant of that name
  /// is attached.
  void attach(TransactionParticipant& participant,
              FunctionRef<void(database::Connection&)> prepare);
  void attach(database::DataParticipant& participant,
              FunctionRef<void(database::Connection&)> prepare);
  /// Attaches one that only must be there.
  void attach_mark(Participant& mark);
  /// Requires it from now on, with this detail, whatever the detail was. Doesn't attach it.
  void require_mark(const Participant& mark);
  void detach(const Participant& participant);
  void forget_participant(std::string_view name);
  /// UsageError if a participant of this name is attached. For the leader.
  void refuse_second(std::string_view name) const { participants_.refuse_second(name); }
  /// True if a participant calls user code: then appends must be exclusive.
  bool has_user_code() const noexcept { return participants_.has_user_code(); }

 protected:
  /// How long at least to wait for another thread's transaction, however short the time-out is.
  static constexpr std::chrono::milliseconds least_patience{1000};

  Writer(const Conventions& conventions, bool is_read_only, Random* random, int groups_of_a_leader);
  ~Writer() = default;

  /// Runs Stela's own statements in a separate transaction.
  virtual void write(FunctionRef<void(database::Connection&)> statements) = 0;
  /// True on a thread inside a transaction of this store.
  virtual bool is_inside() const { return queue_.is_leading(); }
  /// Runs `work`, which doesn't throw, between two groups.
  virtual void run_between(FunctionRef<void()> work) = 0;
  // The table of required participants.
  virtual void read_participants(database::Connection& connection) = 0;
  virtual void insert_participant(database::Connection& connection,
                                  const Participant& participant) = 0;
  virtual void delete_participant(database::Connection& connection, std::string_view name) = 0;
  /// Discards all cached state.
  virtual void distrust() noexcept = 0;
  /// UsageError if the engine takes no other participant of this kind.
  virtual void check_room_for(const database::DataParticipant&) const {}

  KnownModules known_schemas() const;
  std::chrono::steady_clock::time_point steady_now() const;
  /// `written` counts the callers in this commit that wrote.
  void report_commit(std::int64_t events, std::int64_t written,
                     std::chrono::steady_clock::time_point began) const noexcept;
  void report_failure(const std::exception_ptr& error) const noexcept;

  /// Lives during an append. UsageError for a nested append, which only a participant can make.
  class Appending {
   public:
    explicit Appending(Writer& writer);
    ~Appending() { writer_.appending_ = false; }
    Appending(const Appending&) = delete;
    Appending& operator=(const Appending&) = delete;

   private:
    Writer& writer_;
  };

  const database::OwningProcess owner_;
  CommitQueue queue_;
  UuidGenerator ids_;
  Participants participants_;
  std::int64_t last_sequence_ = 0;

 private:
  /// Registers the participant, and lists it in the same transaction: an append in between would be
  /// refused.
  void register_participant(const Participant& participant,
                            FunctionRef<void(database::Connection&)> prepare,
                            FunctionRef<void()> list);

  const Conventions& conventions_;
  const bool is_read_only_;
  bool appending_ = false;
  mutable std::mutex schemas_mutex_;
  /// Guarded by schemas_mutex_: a module may be opened during a write.
  KnownModules known_schemas_;
};

}  // namespace stela::ledger

// The database of a store: how other modules read it, write to it, and wait for commits.
#pragma once

#include "database/commit_watch.hpp"
#include "database/connection.hpp"
#include "database/data_participant.hpp"
#include "database/event_reader.hpp"
#include "database/migration.hpp"
#include "database/presence.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/event_store.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace stela {
class EventImport;
}

namespace stela::database {

/// What a commit must wait for.
enum class Sync : std::uint8_t {
  /// As the store's durability requires.
  as_stored,
  /// Nothing: it may be lost in a power cut.
  none,
  /// Until programs on other machines can rely on it. Nothing on an engine whose users share one
  /// host, and so its power cuts.
  if_shared,
};

/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Database {
 public:
  using Work = FunctionRef<void(Connection&)>;

  virtual ~Database() = default;

  virtual const Clock& clock() const noexcept = 0;
  /// The time by the clock that all users of the database share.
  virtual Timestamp now() const { return clock().now(); }
  /// The same in the transaction of a connection: its next statements see everything committed
  /// before that time. `now` may be off by half a round trip.
  virtual Timestamp now(Connection&) const { return now(); }

  /// Each statement of `work` sees the commits up to its own start.
  virtual void read(Work work) = 0;
  /// All statements of `work` see the same state.
  virtual void read_snapshot(Work work) = 0;
  /// Runs `work` in a transaction of its own.
  virtual void write(Work work, Sync sync = Sync::as_stored) = 0;
  /// The same, perhaps on another thread and in one commit with other writes: for statements that
  /// call no foreign code.
  virtual void write_along(Work work, Sync sync) = 0;
  /// The same as `write`, but others may append meanwhile if the engine allows it: for work that
  /// may call any code, and that a lease keeps from being done twice. Such work and `write` never
  /// overlap.
  virtual void write_apart(Work work, Sync sync) { write(work, sync); }

  /// `prepare` runs in the transaction that registers the participant. UsageError if a participant
  /// of that name is attached.
  virtual void attach(TransactionParticipant& participant, Work prepare) = 0;
  virtual void attach(DataParticipant& participant, Work prepare) = 0;
  /// Attaches a participant that adds nothing to appends: it only must be there.
  virtual void attach_mark(Participant& mark) = 0;
  virtual void detach_mark(Participant& mark) = 0;
  /// Requires a participant of this name with this detail from now on, in the place of one with
  /// another detail. Doesn't attach it.
  virtual void require_mark(const Participant& mark) = 0;
  /// As EventStore::detach.
  virtual void detach(DataParticipant& participant) = 0;
  /// UsageError if a participant of this name is attached. Inside `write`.
  virtual void refuse_second(std::string_view participant) const = 0;
  /// Inside `write`: participants of this store reload their cached state.
  virtual void forget_caches() = 0;

  /// Brings the tables of a module up to date. SchemaMismatch if they are outdated and the store
  /// was opened read-only.
  void migrate(std::string_view module, std::span<const Migration> migrations) {
    migrate(module, migrations, {});
  }
  /// `on_postgres`: the migrations for PostgreSQL; empty if the module has no tables there.
  virtual void migrate(std::string_view module, std::span<const Migration> migrations,
                       std::span<const Migration> on_postgres) = 0;
  /// Whether a power cut may lose commits that `sync` hasn't flushed.
  virtual bool is_relaxed() const noexcept = 0;
  /// Whether programs on other machines use it too. Then it may end while they run on, and they
  /// continue when it is back.
  virtual bool is_shared() const noexcept { return false; }
  /// Whether the server ended the work's session: the work may be the cause.
  virtual bool has_lost_session(const Error&) const noexcept { return false; }
  /// Whether the trouble passes, for a caller that reads the written state again: a lock held for
  /// long, a full disk, an unreachable server. The reading then shows how an unclear commit ended.
  bool recovers_from(const Error& error) const noexcept {
    switch (error.code()) {
      case ErrorCode::store_busy:
      case ErrorCode::store_full:
        return true;
      case ErrorCode::commit_in_doubt:
        return is_shared();
      default:
        return false;
    }
  }
  /// When it returns, everything committed is on the disk; others commit meanwhile. StoreFailed if
  /// the disk fails: then this store writes nothing more.
  virtual void sync() = 0;

  virtual std::unique_ptr<EventReader> make_event_reader() = 0;
  virtual std::unique_ptr<EventImport> make_import() = 0;
  /// The store must outlive the watch.
  virtual std::unique_ptr<CommitWatch> watch_commits() = 0;
  /// Shows others that this process lives, for as long as the presence exists.
  virtual std::unique_ptr<Presence> appear() = 0;
  /// Whether the presence with this number lives; nothing if the system can't tell.
  virtual std::optional<bool> is_present(std::int64_t number) const noexcept = 0;
};

}  // namespace stela::database

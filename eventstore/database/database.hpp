// The database of a store: how the modules beside the event store read it, write to it, and wait
// for what others write.
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

/// What a commit has to wait for.
enum class Sync : std::uint8_t {
  /// What the store's durability says.
  as_stored,
  /// Nothing: it may be lost in a power cut.
  none,
  /// That programs on other machines can rely on it; nothing on an engine whose users share one
  /// host, and so its power cuts.
  if_shared,
};

/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Database {
 public:
  using Work = FunctionRef<void(Connection&)>;

  virtual ~Database() = default;

  virtual const Clock& clock() const noexcept = 0;
  /// By the clock that all who use the database share.
  virtual Timestamp now() const { return clock().now(); }
  /// The same in the transaction of a connection: its next statements see everything that was
  /// committed before that time. `now` may be off by half of what a question takes.
  virtual Timestamp now(Connection&) const { return now(); }

  /// Each statement of `work` sees what is committed when it runs.
  virtual void read(Work work) = 0;
  /// All statements of `work` see the same.
  virtual void read_snapshot(Work work) = 0;
  /// Runs `work` in a transaction of its own.
  virtual void write(Work work, Sync sync = Sync::as_stored) = 0;
  /// The same, perhaps on another thread and in one commit with what others write: for statements
  /// that call nobody else's code.
  virtual void write_along(Work work, Sync sync) = 0;
  /// The same as `write`, but others append meanwhile where the engine can do that: for work that
  /// may call anybody's code, and that a lease keeps from being done twice. Such work ends before
  /// `write` begins, and the other way round.
  virtual void write_apart(Work work, Sync sync) { write(work, sync); }

  /// `prepare` runs in the transaction that registers the participant. UsageError if one of its
  /// name is attached.
  virtual void attach(TransactionParticipant& participant, Work prepare) = 0;
  virtual void attach(DataParticipant& participant, Work prepare) = 0;
  /// As EventStore::detach.
  virtual void detach(DataParticipant& participant) = 0;
  /// UsageError if a participant of this name is attached. Inside `write`.
  virtual void refuse_second(std::string_view participant) const = 0;
  /// Inside `write`: participants of this store read again what they know of the database.
  virtual void forget_caches() = 0;

  /// Brings the tables of a module up to date; SchemaMismatch if they aren't, and the store was
  /// opened to be read only.
  void migrate(std::string_view module, std::span<const Migration> migrations) {
    migrate(module, migrations, {});
  }
  /// `on_postgres`: the tables on PostgreSQL; empty if the module has none there.
  virtual void migrate(std::string_view module, std::span<const Migration> migrations,
                       std::span<const Migration> on_postgres) = 0;
  /// Whether a power cut may take what is committed, until `sync`.
  virtual bool is_relaxed() const noexcept = 0;
  /// Whether programs on other machines use it too: then it may end without them, and they continue
  /// when it is back.
  virtual bool is_shared() const noexcept { return false; }
  /// Whether the server ended the session that the work was in: the work may be the cause.
  virtual bool has_lost_session(const Error&) const noexcept { return false; }
  /// Whether it is trouble that passes, for whoever reads anew what is written: a lock that is held
  /// for long, a full disk, a server that is away. What one committed that ended is seen then.
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
  /// Everything that is committed is on the disk when it returns; others commit meanwhile.
  /// StoreFailed if the disk fails: then this store writes nothing more.
  virtual void sync() = 0;

  virtual std::unique_ptr<EventReader> make_event_reader() = 0;
  virtual std::unique_ptr<EventImport> make_import() = 0;
  /// The store must outlive the watch.
  virtual std::unique_ptr<CommitWatch> watch_commits() = 0;
  /// Lets others see that this process lives, for as long as the presence does.
  virtual std::unique_ptr<Presence> appear() = 0;
  /// Whether the presence of this number lives; nothing if the system doesn't say.
  virtual std::optional<bool> is_present(std::int64_t number) const noexcept = 0;
};

}  // namespace stela::database

// A store for the keys of personal fields, apart from the events.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/clock.hpp>
#include <stela/framework/keyring.hpp>
#include <stela/framework/log.hpp>
#include <stela/framework/uuid.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

namespace keys {
struct KeyStore;
}

/// Wraps and unwraps a key store's key-encryption key; no other key goes through it. Exceptions
/// from `unwrap` reach the caller of the key store. Threads: any.
struct MasterKey {
  using Bytes = std::vector<std::uint8_t>;
  using Change = std::function<Bytes(std::span<const std::uint8_t>)>;

  Change wrap = {};
  Change unwrap = {};
  /// The file that it is in; empty if it is in none.
  std::string file = {};
};

/// A file of 32 random bytes that only this user may read. It is read each time it is needed;
/// StoreFailed then, if it is missing, has another size, or is readable by others.
STELA_EVENTSTORE_EXPORT MasterKey key_file(std::string path);
/// A key management service: it gets 56 bytes to wrap. The wrapped bytes must be authenticated.
STELA_EVENTSTORE_EXPORT MasterKey key_callback(MasterKey::Change wrap, MasterKey::Change unwrap);

struct KeyOptions {
  /// Empty: the file "<path>.master", created with the key store, with a warning in the log.
  MasterKey master = {};
  /// The erasures file. Keep it out of backups, so that a restored key store destroys those keys
  /// again. Empty: "<path>.erasures".
  std::string erasures = {};
  /// Creates the key store if it is missing.
  bool create = true;
  /// Only reads: no key is created or destroyed.
  bool read_only = false;
  /// The most keys that are held in memory.
  std::size_t cached_keys = 10'000;
  std::chrono::milliseconds busy_timeout{5000};
  LogSink* log = &no_log();
  const Clock* clock = &system_clock();
  /// The name of a registered SQLite VFS. Empty: the platform's.
  std::string vfs = {};
};

/// What remains of a destroyed key.
struct DestroyedKey {
  KeyId id;
  std::int64_t number = 0;
  std::string purpose;
  std::int64_t generation = 0;
  Timestamp destroyed_at;
  /// The number of the newest key-encryption key then.
  std::int64_t rotation = 0;
};

/// The state of a key store, which an event store compares.
struct KeyStanding {
  Uuid id;
  /// The tenant whose it is, its registry, and where that is; empty: no tenant's.
  std::string serves = {};
  /// The number of the newest key; 0 if there is none.
  std::int64_t highest = 0;
  /// Changes when keys are destroyed.
  std::int64_t version = 0;
  /// The number of the newest key-encryption key, and when it was made.
  std::int64_t rotation = 0;
  Timestamp made_at;
  /// When its rotation ended; unset if there was none, or while former keys may remain.
  std::optional<Timestamp> rotated_at = {};
  /// A rotation is rewrapping keys, or was interrupted.
  bool is_rotating = false;
};

struct KeyRotation {
  std::int64_t number = 0;
  std::int64_t rewrapped = 0;
  /// After `ended_at`, keys that were destroyed before `began_at` can't be recovered from the key
  /// store's file, whatever remains in freed pages and blocks of the disk. A server's log, like a
  /// backup, has the former key-encryption key, wrapped by the master key.
  Timestamp began_at;
  Timestamp ended_at;
  /// Why that doesn't hold: something on the server keeps remains of former keys in the tables.
  /// Rotate again once it has ended. Empty: nothing does.
  std::string left_over = {};
};

/// Keys in a file or on a server, each wrapped by a key-encryption key that the master key wraps.
/// Any number of threads and processes may use it, but not after a fork.
///
/// It belongs to one store. Don't move it while a store uses it. Once an older copy has taken its
/// place, calls fail with StoreFailed until it is opened again.
///
/// Keys are held in memory for at most a minute. Keys destroyed by another process are noticed
/// within a tenth of a second of use, and by `refresh`.
/// Errors are those of a store: StoreBusy, StoreFull, StoreFailed.
/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Keys final : public Keyring {
 public:
  ~Keys() override;
  Keys(Keys&&) noexcept;
  Keys& operator=(Keys&&) noexcept;

  /// As for Keyring. Threads that create keys at the same time share a commit. UsageError if the
  /// key doesn't exist yet and the key store is open read-only.
  std::shared_ptr<const SubjectKey> key_of(const Subject& subject) override;
  std::shared_ptr<const SubjectKey> find(const KeyId& id) override;
  /// Call it before a batch: drops the keys in memory if another process destroyed some.
  void refresh();

  std::vector<KeyInfo> keys_of(std::string_view subject) override;
  /// Living keys of all subjects with numbers above `after`, in ascending order.
  std::vector<KeyInfo> living(std::int64_t after, std::size_t limit);
  /// Destroyed keys, in the same way.
  std::vector<DestroyedKey> destroyed(std::int64_t after, std::size_t limit);

  /// All destroyed keys of a subject, by purpose and generation.
  std::vector<DestroyedKey> destroyed_of(std::string_view subject);
  /// Since when keys that were destroyed after this rotation can't be recovered: the end of the
  /// next one that this key store has seen. Unset if there is none.
  std::optional<Timestamp> certain_since(std::int64_t rotation);

  /// Records them in the erasures file first.
  std::size_t destroy(std::span<const KeyId> ids) override;
  void allow_again(std::string_view subject) override;

  /// Keeps the subject's fields for one purpose from being forgotten, until then or until it is
  /// released; replaces an earlier hold. `forget` leaves such fields alone, unless it began before
  /// the hold. It also covers keys made later. The reason is stored in clear: put nothing personal
  /// into it.
  void hold(const Subject& subject, std::optional<Timestamp> until, std::string_view reason);
  void release(const Subject& subject);

  KeyStanding standing();
  /// KeysBehind if this isn't the key store `id`, or if it lacks keys up to the number `highest`.
  void check_standing(const Uuid& id, std::int64_t highest);

  /// Creates a new key-encryption key, rewraps all keys with it, and destroys the former one.
  /// Others may use the key store meanwhile. If it is interrupted, the next opening of the key
  /// store continues it.
  ///
  /// A backup of the key store holds the key-encryption key of its time, wrapped by the master key.
  /// To make the backup worthless as well, call `change_master` afterwards, and destroy the former
  /// master key. `progress` is told how many keys are rewrapped so far, and the most that there
  /// will be.
  KeyRotation rotate(const std::function<void(std::int64_t, std::int64_t)>& progress = {});
  /// From now on `master` wraps the key-encryption key. Other processes must reopen the key store
  /// with it.
  void change_master(MasterKey master);

  /// Problems found so far in the erasures file: records that are missing or were changed. Genuine
  /// records have been applied all the same.
  std::vector<std::string> erasure_problems() const;
  /// How many keys were destroyed again at opening because the key store had been restored.
  std::size_t destroyed_again() const noexcept;
  /// How many keys would be destroyed again, for a key store that is open read-only.
  std::size_t brought_back();

 private:
  friend Keys open_keys(const std::string& location, const KeyOptions& options);
  explicit Keys(std::unique_ptr<keys::KeyStore> store) noexcept;

  std::unique_ptr<keys::KeyStore> store_;
};

/// Opens the key store in a file, or on a PostgreSQL server ("postgresql://keys@host/database"), in
/// the schema `stela_keys`. Creates it if it is missing, as a file for this user alone.
/// SchemaMismatch if it isn't a key store, or is one of a newer Stela. StoreFailed if the master
/// key isn't the key store's.
///
/// On a server any number of machines may use it. They need the same master key and the same
/// erasures file, and both must be named; readers need no file. UsageError if the database has an
/// event store: one database, and its backups, must not have both.
STELA_EVENTSTORE_EXPORT Keys open_keys(const std::string& location, const KeyOptions& options = {});

}  // namespace stela

// A store of the keys that personal fields are sealed with, apart from the events.
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

/// Wraps a key store's key-encryption key, and unwraps it; no other key goes through it. What
/// `unwrap` throws reaches the caller of the key store. Threads: any.
struct MasterKey {
  using Bytes = std::vector<std::uint8_t>;
  using Change = std::function<Bytes(std::span<const std::uint8_t>)>;

  Change wrap = {};
  Change unwrap = {};
};

/// A file of 32 random bytes that this user alone may read. It is read whenever it is needed.
/// StoreFailed then, if it is missing, has another size, or others may read it.
STELA_EVENTSTORE_EXPORT MasterKey key_file(std::string path);
/// A key management service: it gets 56 bytes to wrap. What it wraps must be authenticated.
STELA_EVENTSTORE_EXPORT MasterKey key_callback(MasterKey::Change wrap, MasterKey::Change unwrap);

struct KeyOptions {
  /// Empty: the file "<path>.master", made with the key store, with a warning in the log.
  MasterKey master = {};
  /// The file of erasures: it belongs outside of the backups, so that a restored key store
  /// destroys again what had been destroyed. Empty: "<path>.erasures".
  std::string erasures = {};
  /// Make the key store if it is missing.
  bool create = true;
  /// Only read: no key is made or destroyed.
  bool read_only = false;
  /// The most keys that are held in memory.
  std::size_t cached_keys = 10'000;
  std::chrono::milliseconds busy_timeout{5000};
  LogSink* log = &no_log();
  const Clock* clock = &system_clock();
  /// The name of a registered SQLite VFS. Empty: the platform's.
  std::string vfs = {};
};

/// What is left of a destroyed key.
struct DestroyedKey {
  KeyId id;
  std::int64_t number = 0;
  std::string purpose;
  std::int64_t generation = 0;
  Timestamp destroyed_at;
};

/// Where a key store stands: what an event store compares.
struct KeyStanding {
  Uuid id;
  /// Of the last key that was made; 0 if there is none.
  std::int64_t highest = 0;
  /// Changes when keys are destroyed.
  std::int64_t version = 0;
  /// The number of the newest key-encryption key, and when it was made.
  std::int64_t rotation = 0;
  Timestamp rotated_at;
  /// Keys are being rewrapped, or that was interrupted.
  bool is_rotating = false;
};

struct KeyRotation {
  std::int64_t number = 0;
  std::int64_t rewrapped = 0;
  /// Keys that were destroyed before then can't be had from the key store's file any more, whatever
  /// is left of it in freed pages and blocks of the disk: from `ended_at` on. A server's log has
  /// the former key-encryption key, wrapped by the master key, as a backup has it.
  Timestamp began_at;
  Timestamp ended_at;
  /// Why that isn't so: on a server something keeps what is left of former keys in the tables.
  /// Rotate again once it has ended. Empty: nothing does.
  std::string left_over = {};
};

/// Keys in a file or on a server, each wrapped by a key-encryption key that the master key wraps.
/// Any number of threads and processes may use it; not after a fork.
///
/// It belongs to one store. Don't move it while a store uses it. StoreFailed from when an older
/// copy has taken its place, until it is opened again.
///
/// Keys are held in memory for at most a minute. What another process destroys is noticed within a
/// tenth of a second of use, and by `refresh`.
/// Errors are those of a store: StoreBusy, StoreFull, StoreFailed.
/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Keys final : public Keyring {
 public:
  ~Keys() override;
  Keys(Keys&&) noexcept;
  Keys& operator=(Keys&&) noexcept;

  /// As Keyring says. Threads that make keys at the same time share a commit. UsageError if the key
  /// would have to be made, and the key store is open read-only.
  std::shared_ptr<const SubjectKey> key_of(const Subject& subject) override;
  std::shared_ptr<const SubjectKey> find(const KeyId& id) override;
  /// Before a batch: drops the keys in memory if some were destroyed by others.
  void refresh();

  std::vector<KeyInfo> keys_of(std::string_view subject) override;
  /// Living keys of all subjects after the number `after`, in the order of their numbers.
  std::vector<KeyInfo> living(std::int64_t after, std::size_t limit);
  /// The same of destroyed keys.
  std::vector<DestroyedKey> destroyed(std::int64_t after, std::size_t limit);

  /// The file of erasures has them first.
  std::size_t destroy(std::span<const KeyId> ids) override;
  void allow_again(std::string_view subject) override;

  /// Keeps what is for the subject's purpose from being forgotten, until then or until it is
  /// released; in the place of a hold before it. `forget` leaves it, unless it has begun before. So
  /// it is for keys that are yet to be made. The reason is stored in clear: put nothing personal
  /// into it.
  void hold(const Subject& subject, std::optional<Timestamp> until, std::string_view reason);
  void release(const Subject& subject);

  KeyStanding standing();
  /// KeysBehind if this isn't the key store `id`, or lacks keys up to the number `highest`.
  void check_standing(const Uuid& id, std::int64_t highest);

  /// Makes a new key-encryption key, wraps all keys by it, and destroys the one before. Others may
  /// use the key store meanwhile. If it is interrupted, whoever opens the key store next continues.
  ///
  /// A backup of the key store holds the key-encryption key of its time, wrapped by the master key.
  /// To make it worthless as well, call `change_master` afterwards, and destroy the former one.
  /// `progress` is told how many keys are wrapped so far, and of how many at most.
  KeyRotation rotate(const std::function<void(std::int64_t, std::int64_t)>& progress = {});
  /// From now on `master` wraps the key-encryption key. Other processes must open the key store
  /// again with it.
  void change_master(MasterKey master);

  /// What is wrong with the file of erasures, as far as it has been read: records that are missing,
  /// or were changed. Those that are genuine have been applied all the same.
  std::vector<std::string> erasure_problems() const;
  /// How many keys were destroyed again when the key store was opened: it had been restored.
  std::size_t destroyed_again() const noexcept;
  /// How many would be, of a key store that is open read-only.
  std::size_t brought_back();

 private:
  friend Keys open_keys(const std::string& location, const KeyOptions& options);
  explicit Keys(std::unique_ptr<keys::KeyStore> store) noexcept;

  std::unique_ptr<keys::KeyStore> store_;
};

/// Opens the key store in a file, or on a PostgreSQL server ("postgresql://keys@host/database"), in
/// the schema `stela_keys`. Makes it if it is missing: a file for this user alone. SchemaMismatch
/// if it is something else, or of a newer Stela. StoreFailed if the master key isn't the key
/// store's.
///
/// On a server any number of machines may use it. They need the same master key and the same file
/// of erasures, which both must be named; those that only read need no file. UsageError if the
/// database has a store of events: it, and its backups, must not have both.
STELA_EVENTSTORE_EXPORT Keys open_keys(const std::string& location, const KeyOptions& options = {});

}  // namespace stela

// The inside of a key store: its keys, their wrapping, and their destruction.
#pragma once

#include "commit_queue.hpp"
#include "database/owner.hpp"
#include "erasures.hpp"
#include "key_cache.hpp"
#include "key_database.hpp"
#include "master_key.hpp"
#include "seal.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace stela::keys {

struct KeyRow;

struct Kek {
  std::int64_t number;
  std::shared_ptr<const Secret> key;
};

/// The newest key that a process has seen or made. Its number alone isn't enough: after an older
/// copy has replaced the key store, the number is assigned again.
struct NewestKey {
  std::int64_t number = 0;
  std::string id = {};
};

/// The implementation of `Keys`. Threads: any number at once.
struct KeyStore {
  KeyStore(const std::string& location, const KeyOptions& options);
  ~KeyStore();
  KeyStore(const KeyStore&) = delete;
  KeyStore& operator=(const KeyStore&) = delete;

  /// Reads the data needed to open a key store. False if there is none yet.
  bool settle(const MasterKey& master);
  void make(const MasterKey& master);
  void open_erasures();
  void resume_rotation();

  void read(FunctionRef<void(Connection&)> work);
  void write(FunctionRef<void(Connection&)> work);
  /// Runs `read` and, if that returns true, `write`, in a transaction that others may share.
  void run(FunctionRef<bool(Connection&)> read, FunctionRef<void(Connection&)> write,
           KeyDatabase::Kind kind = KeyDatabase::Kind::changes);
  void carry_out(std::span<CommitQueue::Ticket* const> group) noexcept;
  /// Clears the caches if keys were destroyed since the last call. StoreFailed if the key store
  /// lacks keys that it had: an older copy is in its place.
  void follow(Connection& connection);
  /// Calls `follow` from time to time, or at once if `is_due`.
  void look(bool is_due);
  NewestKey seen();
  /// Records a key that was made here.
  void note_newest(const SubjectKey& key);

  Code binding_of(std::string_view subject) const { return code_of(*binding_key, subject); }
  std::string associated(const KeyRow& row) const;
  bool is_gone(const KeyRow& row) const;
  std::vector<KeyInfo> infos(const std::vector<KeyRow>& rows);
  [[noreturn]] void refuse_row(const KeyRow& row) const;
  Secret unwrapped(const KeyRow& row);
  Key opened(const KeyRow& row);
  /// The living key of a subject, or null if one may be made. Throws SubjectForgotten.
  Key living_key(const std::optional<KeyRow>& newest, const Subject& subject);
  Key find_or_make(Connection& connection, const Subject& subject, const Code& binding);
  std::size_t destroy(std::span<const KeyId> ids);

  Kek newest_kek(Connection& connection);
  KeyStanding standing();
  std::size_t rewrap(Connection& connection, std::int64_t& after);
  bool end_rotation(Connection& connection, std::int64_t& number);
  void finish_rotation(KeyRotation& rotation, FunctionRef<void()> on_batch);

  const std::string& name() const noexcept { return database->name(); }
  std::string_view raw_id() const noexcept { return text_of(id.bytes()); }
  void log(LogLevel level, std::string_view event, const std::string& message) const {
    options.log->write({level, event, message});
  }

  const KeyOptions options;
  const database::OwningProcess owner;
  const std::unique_ptr<KeyDatabase> database;
  Uuid id = {};
  std::optional<KeyEncryptionKeys> keks;
  std::optional<Secret> root;
  std::optional<Secret> binding_key;
  std::optional<Erasures> erasures;
  /// At opening, the key store had seen all records of the erasures file.
  bool erasures_applied = false;
  std::size_t destroyed_again = 0;
  CommitQueue queue;
  KeyCache cache;
  /// The key store's version at the last look.
  std::atomic<std::int64_t> version{0};
  std::mutex newest_mutex;
  NewestKey newest_key;
  std::atomic<std::chrono::steady_clock::duration::rep> next_look{0};

 private:
  void age_now_and_then(const std::stop_token& stop);
  std::thread start_aging();

  /// Also drops keys that nobody asks for any more.
  std::stop_source aging_ends_;
  std::thread aging_;
};

}  // namespace stela::keys

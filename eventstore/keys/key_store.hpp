// A key store: its keys, their wrapping, and what destroys them.
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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::keys {

struct KeyRow;

struct Kek {
  std::int64_t number;
  std::shared_ptr<const Secret> key;
};

/// What `Keys` promises. Threads: any number at once.
class KeyStore {
 public:
  KeyStore(const std::string& location, const KeyOptions& options);

  Key key_of(const Subject& subject);
  Key find(const KeyId& id);
  void look(bool is_due);
  std::vector<KeyInfo> keys_of(std::string_view subject);
  std::vector<KeyInfo> living(std::int64_t after, std::size_t limit);
  std::size_t destroy(std::span<const KeyId> ids);
  void allow_again(std::string_view subject);
  KeyStanding standing();
  KeyRotation rotate();
  void change_master(MasterKey master);
  void read(FunctionRef<void(Connection&)> work);
  const std::string& name() const noexcept { return database_->name(); }
  Erasures& erasures() noexcept { return *erasures_; }
  std::size_t destroyed_again() const noexcept { return destroyed_again_; }

 private:
  /// What a key store is opened with.
  bool settle(const MasterKey& master);
  void make(const MasterKey& master);
  void open_erasures();
  void apply_erasures();

  void write(FunctionRef<void(Connection&)> work);
  /// Runs `read`, and if that says so `write`, in a transaction that others may share.
  /// Drops what was read before, if keys were destroyed since. StoreFailed if the key store lacks
  /// what it had: an older one is in its place.
  void follow(Connection& connection);
  void run(FunctionRef<bool(Connection&)> read, FunctionRef<void(Connection&)> write);
  void carry_out(std::span<CommitQueue::Ticket* const> group) noexcept;

  Code binding_of(std::string_view subject) const { return code_of(*binding_key_, subject); }
  std::string associated(const KeyRow& row) const;
  bool is_gone(const KeyRow& row) const;
  std::vector<KeyInfo> infos(const std::vector<KeyRow>& rows);
  [[noreturn]] void refuse_row(const KeyRow& row) const;
  Secret unwrapped(const KeyRow& row);
  Key opened(const KeyRow& row);
  Kek newest_kek(Connection& connection);
  /// The living key of a subject, or null if one may be made. SubjectForgotten.
  Key living_key(const std::optional<KeyRow>& newest, const Subject& subject);
  Key find_or_make(Connection& connection, const Subject& subject, const Code& binding);

  std::size_t rewrap(Connection& connection, std::int64_t& after);
  bool end_rotation(Connection& connection, std::int64_t& number);
  void finish_rotation(KeyRotation& rotation);
  void resume_rotation();
  void log(LogLevel level, std::string_view name, const std::string& message) const {
    options_.log->write({level, name, message});
  }

  const KeyOptions options_;
  const database::OwningProcess owner_;
  const std::unique_ptr<KeyDatabase> database_;
  Uuid id_ = {};
  std::optional<KeyEncryptionKeys> keks_;
  std::optional<Secret> root_;
  std::optional<Secret> binding_key_;
  std::optional<Erasures> erasures_;
  std::size_t destroyed_again_ = 0;
  CommitQueue queue_;
  KeyCache cache_;
  /// The key store's, when it was last looked at.
  std::atomic<std::int64_t> version_{0};
  /// The newest key that is known to be durable.
  std::atomic<std::int64_t> highest_{0};
  std::atomic<std::chrono::steady_clock::duration::rep> next_look_{0};
};

}  // namespace stela::keys

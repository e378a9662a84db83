// A presence in an SQLite database.
#pragma once

#include "database/presence.hpp"
#include "sqlite/lock_file.hpp"

#include <stela/eventstore/export.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace stela::sqlite {

/// A byte of the lock file, locked for as long as this lives. The system unlocks it when the
/// process ends, however it ends, visibly to every user of the database, in any container.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Presence final : public database::Presence {
 public:
  /// StoreFailed as for LockFile. An empty path, for a private database, locks nothing.
  explicit Presence(const std::string& database);
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  /// The number of the byte.
  std::int64_t number() const noexcept override { return number_; }
  /// Locks the byte again if somebody has removed the lock file.
  void renew() override;

  /// Whether the presence with this number lives; nothing if the system can't tell.
  static std::optional<bool> lives(const std::string& database, std::int64_t number) noexcept;

 private:
  void lock();

  std::int64_t number_;
  std::optional<LockFile> file_;
};

}  // namespace stela::sqlite

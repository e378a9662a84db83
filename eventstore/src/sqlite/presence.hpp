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
/// process ends, however it ends, and everybody who has the database sees it, from any container.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Presence final : public database::Presence {
 public:
  /// StoreFailed as LockFile. An empty path, of a database that nobody else can see, locks nothing.
  explicit Presence(const std::string& database);
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  /// Which byte it is.
  std::int64_t number() const noexcept override { return number_; }
  /// Locks the byte again if somebody has tidied the lock file away.
  void renew() override;

  /// Whether the presence of this number lives; nothing if the system doesn't say.
  static std::optional<bool> lives(const std::string& database, std::int64_t number) noexcept;

 private:
  void lock();

  std::int64_t number_;
  std::optional<LockFile> file_;
};

}  // namespace stela::sqlite

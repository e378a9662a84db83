// The SQLite file of a key store.
#pragma once

#include "database/sqlite/connection.hpp"
#include "sqlite/place.hpp"

#include <stela/eventstore/keys.hpp>
#include <stela/framework/function_ref.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace stela::keys {

/// Threads: one at a time.
class KeyDatabase {
 public:
  /// Makes the file and its tables if need be. SchemaMismatch if it is something else.
  KeyDatabase(const std::string& path, const KeyOptions& options);

  const std::string& path() const noexcept { return path_; }
  /// To read. StoreFailed if the file isn't at its path any more.
  database::Connection& connection();
  /// One transaction, which is durable when this returns. UsageError if it is open read-only.
  void write(FunctionRef<void(database::Connection&)> work);

 private:
  void migrate(Timestamp now);

  const std::string path_;
  const bool is_read_only_;
  const std::chrono::milliseconds busy_timeout_;
  sqlite::Connection connection_;
  std::optional<sqlite::Place> place_;
};

}  // namespace stela::keys

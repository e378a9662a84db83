// The database of a key store: an SQLite file, or a schema of its own on PostgreSQL.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/keys.hpp>
#include <stela/framework/detail/function_ref.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace stela::keys {

using database::Connection;

/// Threads: one at a time.
class KeyDatabase {
 public:
  virtual ~KeyDatabase() = default;

  /// The path, or the connection string without its password.
  const std::string& name() const noexcept { return name_; }
  /// The path of a neighbouring file, "<path>.master"; nothing on a server.
  virtual std::string beside(std::string_view /*end*/) const { return {}; }
  /// For reading. StoreFailed if the file is no longer at its path; StoreBusy if the server is
  /// gone.
  virtual Connection& connection() = 0;
  /// What a transaction does: only adding rows is faster.
  enum class Kind : bool { adds, changes };

  /// Runs one transaction without concurrent writers; it is durable when this returns. UsageError
  /// if the database is open read-only.
  void write(Kind kind, FunctionRef<void(Connection&)> work);
  /// Removes remains of deleted or overwritten rows. Returns what prevents that, or nothing.
  /// Threads: any.
  virtual std::string tidy() { return {}; }
  /// Called with each connection except the first.
  std::function<void(Connection&)> on_contact = [](Connection&) {};

 protected:
  KeyDatabase(std::string name, bool is_read_only)
      : name_{std::move(name)}, is_read_only_{is_read_only} {}

 private:
  virtual void begin(Kind kind) = 0;
  virtual void commit() = 0;
  virtual void roll_back() noexcept = 0;

  const std::string name_;
  const bool is_read_only_;
};

/// Opens a location, in the forms that `open` of a store takes. Creates the tables if necessary.
/// SchemaMismatch if it isn't a key store.
std::unique_ptr<KeyDatabase> open_database(const std::string& location, const KeyOptions& options);
/// Which key store stands at a path, and what it serves. Null id: none has been made in that file
/// yet. Needs no master key. Otherwise as `open_database`.
struct Identity {
  Uuid id = {};
  std::string serves = {};
};
Identity read_identity(const std::string& path);
void set_serves(const std::string& path, const std::string& serves);
std::unique_ptr<KeyDatabase> open_on_server(const std::string& conninfo, const KeyOptions& options);

}  // namespace stela::keys

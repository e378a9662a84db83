// What an SQLite store is made of; the modules beside this one build on it.
#pragma once

#include "sqlite/readers.hpp"
#include "sqlite/schema.hpp"
#include "sqlite/writer.hpp"

#include <stela/eventstore/sqlite.hpp>

#include <memory>
#include <optional>
#include <string>

namespace stela::sqlite {

/// UsageError if SQLite would take `path` for something else than the name of a file.
void check_name(const std::string& path);

/// UsageError or StoreFailed if no database can be at `path`, in words better than SQLite's.
void check_path(const std::string& path, const Options& options);

/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Store::Core final : private Reading {
 public:
  /// Opens the database at `path`; empty for one in memory.
  Core(std::string path, const Options& options);
  ~Core() override;

  const Conventions& conventions() const noexcept { return conventions_; }
  const Facts& facts() const noexcept { return facts_; }
  const Options& options() const noexcept { return options_; }
  const std::string& path() const noexcept { return path_; }
  Writer& writer() noexcept { return *writer_; }
  KindTable& kinds() noexcept { return kinds_; }
  Timestamp now() const { return options_.clock->now(); }

  /// Where readers get their connections: a pool, or for a database in memory the writer's own.
  Reading& reading() noexcept;
  /// Brings the tables of another module up to date, under the write lock if they aren't;
  /// SchemaMismatch if they aren't, and the store was opened to be read only.
  void migrate(std::string_view module, std::span<const Migration> migrations);
  /// Everything that is committed is on the disk when it returns; others commit meanwhile.
  /// StoreFailed if the disk fails: then this store writes nothing more.
  void sync_log();
  /// A connection of the caller's own to the same database. UsageError in memory; StoreFailed if
  /// the file isn't at its path any more.
  std::unique_ptr<Connection> connect() const;
  /// StoreFailed if the file isn't at its path any more: for those who read on a connection of
  /// their own.
  void check_place() const { place_->check(); }

 private:
  void read(FunctionRef<void(Connection&)> work) override { writer_->read(work); }

  std::unique_ptr<Connection> open_connection();
  /// Makes what isn't there yet, under the write lock; of a database that is ready it waits for
  /// nobody.
  void prepare(Connection& connection, WriteLock& lock);
  bool is_ready(Connection& connection) const;
  void make_ready(Connection& connection);

  const OwningProcess owner_;
  std::string path_;
  const Options options_;
  ConnectionOptions connection_options_;
  Conventions conventions_;
  Facts facts_;
  KindTable kinds_;
  std::optional<Place> place_;
  std::unique_ptr<Readers> readers_;
  std::unique_ptr<Writer> writer_;
};

}  // namespace stela::sqlite

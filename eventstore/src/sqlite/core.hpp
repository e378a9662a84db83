// The engine's part of a store on SQLite.
#pragma once

#include "database/sqlite/driver.hpp"
#include "ledger/appending_core.hpp"
#include "sqlite/readers.hpp"
#include "sqlite/schema.hpp"
#include "sqlite/writer.hpp"
#include "tag_coverage.hpp"

#include <stela/eventstore/sqlite.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace stela::sqlite {

/// UsageError if SQLite would take `path` for something other than a file name.
void check_name(const std::string& path);

/// UsageError or StoreFailed, with a clearer message than SQLite's, if no database can be at
/// `path`.
void check_path(const std::string& path, const Options& options);

/// Threads: any number at once.
class STELA_EVENTSTORE_EXPORT Core final : public ledger::AppendingCore<Writer, WriteWork>,
                                           public Driver {
 public:
  /// Opens the database at `path`; empty for one in memory.
  Core(std::string path, const Options& options);
  ~Core() override;

  EventRange read_stream(const StreamId& stream, const StreamQuery& query) override;
  EventRange read(const stela::Query& query, const QueryRange& range) override;
  Standpoint standpoint(std::span<const TagNeed> needs) override;
  std::optional<AppendResult> find_append(std::string_view append_id) override;
  EventRange read_all(const AllQuery& query) override;
  EventRange read_at(std::span<const GlobalSequence> sequences) override;
  GlobalSequence last_sequence() override;
  TagCatalogue tag_catalogue() override;
  std::optional<StoredSnapshot> find_snapshot(const StreamId& stream, StreamVersion to,
                                              GlobalSequence up_to) override;
  void save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) override;
  void drop_snapshot(const StreamId& stream) override;
  std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence sequence) override;
  const Uuid& id() const noexcept override { return facts_.store_id; }
  VerifyResult verify(FunctionRef<void(const Problem&)> report,
                      const VerifyOptions& options) override;
  std::unique_ptr<stela::EventImport> make_import() override;
  std::int64_t last_known_sequence() override;
  void for_each_tag(std::string_view after,
                    FunctionRef<bool(std::string_view, GlobalSequence)> f) override;
  void declare_tags(std::span<const TagNeed> needs) override;
  std::int64_t write_tags(std::span<const TagsOfEvent> events) override;
  void complete_tags(std::span<const TagNeed> needs) override;
  bool forget_tags(std::string_view type, std::string_view category) override;

  const Facts& facts() const noexcept { return facts_; }
  const Options& options() const noexcept { return options_; }
  const std::string& path() const noexcept { return path_; }
  Writer& writer() const noexcept override { return *writer_; }
  KindTable& kinds() noexcept { return kinds_; }

  const Clock& clock() const noexcept override { return *options_.clock; }
  using Database::now;
  Timestamp now(database::Connection& connection) const override;
  using EventStore::read;
  void read(Work work) override { reading().read(work); }
  void read_snapshot(Work work) override;
  void write(Work work, Sync sync) override { writer_->run_statements(work, sync); }
  void write_along(Work work, Sync sync) override { writer_->run_along(work, sync); }
  void forget_caches() override { writer_->distrust(); }
  void migrate(std::string_view module, std::span<const database::Migration> migrations,
               std::span<const database::Migration> on_postgres) override;
  bool is_relaxed() const noexcept override { return facts_.durability == Durability::relaxed; }
  void sync() override;
  std::unique_ptr<database::EventReader> make_event_reader() override;
  std::unique_ptr<database::CommitWatch> watch_commits() override;
  std::unique_ptr<database::Presence> appear() override;
  std::optional<bool> is_present(std::int64_t number) const noexcept override;

  Connection& writing() noexcept override { return writer_->connection(); }
  void tidy(FunctionRef<void()> work) override;

  /// Lends connections to readers: from a pool, or for a database in memory the writer's own.
  Reading& reading() noexcept { return *reading_; }
  /// A separate connection for the caller to the same database. UsageError in memory; StoreFailed
  /// if the file is no longer at its path.
  std::unique_ptr<Connection> connect() const;
  /// StoreFailed if the file is no longer at its path: for readers with a connection of their own.
  void check_place() const { place_->check(); }

 private:
  std::unique_ptr<Connection> open_connection();
  /// Creates missing tables and facts under the write lock; if the database is ready, waits for
  /// nobody.
  void prepare(Connection& connection, WriteLock& lock);
  bool is_ready(Connection& connection) const;
  void make_ready(Connection& connection);

  const database::OwningProcess owner_;
  std::string path_;
  const Options options_;
  ConnectionOptions connection_options_;
  Facts facts_;
  KindTable kinds_;
  TagCoverage coverage_;
  std::optional<Place> place_;
  std::unique_ptr<Readers> readers_;
  std::unique_ptr<Writer> writer_;
  Reading* reading_ = nullptr;
};

/// UsageError if `store` isn't on SQLite.
STELA_EVENTSTORE_EXPORT Core& core_of(const Store& store);

}  // namespace stela::sqlite

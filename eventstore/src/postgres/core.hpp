// The engine's part of a store on PostgreSQL.
#pragma once

#include "ledger/appending_core.hpp"
#include "postgres/durability.hpp"
#include "postgres/group_pruning.hpp"
#include "postgres/kinds.hpp"
#include "postgres/presence.hpp"
#include "postgres/reading.hpp"
#include "postgres/schema.hpp"
#include "postgres/server_clock.hpp"
#include "postgres/server_session.hpp"
#include "postgres/writer.hpp"
#include "tag_coverage.hpp"

#include <stela/eventstore/postgres.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace stela::postgres {

/// Threads: any number at once.
class Core final : public ledger::AppendingCore<Writer, WriteWork>, private Reading {
 public:
  Core(const std::string& conninfo, const Options& options);

  EventRange read_stream(const StreamId& stream, const StreamQuery& query) override;
  EventRange read(const stela::Query& query, const QueryRange& range) override;
  Standpoint standpoint(std::span<const TagNeed> needs) override;
  std::optional<AppendResult> find_append(std::string_view append_id) override;
  DecisionAnswer answer(const DecisionQuestion& question) override;
  EventRange read_all(const AllQuery& query) override;
  EventRange read_at(std::span<const GlobalSequence> sequences) override;
  GlobalSequence last_sequence() override;
  TagCatalogue tag_catalogue() override;
  std::optional<StoredSnapshot> find_snapshot(const StreamId& stream, StreamVersion to,
                                              GlobalSequence up_to) override;
  void save_snapshot(const StreamId& stream, const StoredSnapshot& snapshot) override;
  void drop_snapshot(const StreamId& stream) override;
  /// Uncommitted events are visible only in their own transaction.
  std::shared_ptr<const TransactionOutcome> outcome_of(GlobalSequence) override { return nullptr; }
  const Uuid& id() const noexcept override { return facts_.store_id; }
  VerifyResult verify(FunctionRef<void(const Problem&)> report,
                      const VerifyOptions& options) override;
  std::unique_ptr<stela::EventImport> make_import() override;
  std::int64_t last_known_sequence() override { return last_sequence().value(); }

  const ConnectionOptions& connection_options() const noexcept { return connection_options_; }
  /// The most sessions that read at once.
  int readers() const noexcept { return options_.readers.value_or(default_readers()); }
  KindTable& kinds() noexcept { return kinds_; }
  void for_each_tag(std::string_view after,
                    FunctionRef<bool(std::string_view, GlobalSequence)> f) override;
  void declare_tags(std::span<const TagNeed> needs) override;
  std::int64_t write_tags(std::span<const TagsOfEvent> events) override;
  void complete_tags(std::span<const TagNeed> needs) override;
  bool forget_tags(std::string_view type, std::string_view category) override;

  const Clock& clock() const noexcept override { return *options_.clock; }
  /// The server's time, unless the caller brought a clock.
  Timestamp now() const override;
  Timestamp now(database::Connection& connection) const override;
  void read(Work work) override;
  void read_snapshot(Work work) override;
  void write(Work work, database::Sync sync) override;
  void write_along(Work work, database::Sync sync) override;
  void write_apart(Work work, database::Sync sync) override;
  bool has_lost_session(const Error& error) const noexcept override;
  /// The server reads the data participants' state at each append.
  void forget_caches() override {}
  void migrate(std::string_view module, std::span<const database::Migration> migrations,
               std::span<const database::Migration> on_postgres) override;
  /// Reads wait for durability, except for reports.
  bool is_relaxed() const noexcept override { return false; }
  bool is_shared() const noexcept override { return true; }
  void sync() override {}
  std::unique_ptr<database::EventReader> make_event_reader() override;
  std::unique_ptr<database::CommitWatch> watch_commits() override;
  std::unique_ptr<database::Presence> appear() override;
  std::optional<bool> is_present(std::int64_t number) const noexcept override;

 private:
  /// Facts that a store's first connection finds out for all of them.
  struct Contact {
    ConnectionOptions connection_options;
    Facts facts;
    std::unique_ptr<ServerSession> session;
    ServerTime time;
  };
  static Contact make_contact(const std::string& conninfo, const Options& options);
  Core(const std::string& conninfo, const Options& options, Contact first);

  /// The caller brought a clock, which leases follow as well.
  bool has_own_clock() const noexcept;
  Uuid read(FunctionRef<void(Connection&)> work) override { return sessions_.read(work); }
  bool vouch(const Uuid& run, std::int64_t sequence) override {
    // Events on a standby are already on its disk.
    if (run.is_nil() || !options_.durable_reads) return true;
    if (durability_.flush(run, sequence, commit_deadline())) return true;
    sessions_.distrust();
    return false;
  }
  std::chrono::steady_clock::time_point commit_deadline() const {
    return std::chrono::steady_clock::now() + options_.commit_timeout;
  }
  void read_inside(std::string_view begin_with, Work work);
  void refuse_durably(FunctionRef<void()> write);
  Writer& writer() const noexcept override { return writer_; }
  void note_append() noexcept override { pruning_.note_append(conventions_); }

  const database::OwningProcess owner_;
  const Options options_;
  const ConnectionOptions connection_options_;
  const Facts facts_;
  KindTable kinds_;
  TagCoverage coverage_;
  mutable Sessions sessions_;
  Presences presences_{sessions_};
  GroupPruning pruning_{sessions_};
  mutable ServerClock server_clock_;
  Durability durability_{sessions_};
  mutable Writer writer_;
};

}  // namespace stela::postgres

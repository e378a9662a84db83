// An open database, with the participants that its appends need.
#pragma once

#include "cli/invocation.hpp"
#include "database_place.hpp"

#include <stela/eventstore/tenants.hpp>
#include <stela/outbox/operations.hpp>
#include <stela/outbox/outbox.hpp>
#include <stela/projections/projections.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::tool {

/// Writes Stela's own log to stderr, as text or JSON. Threads: any.
class LogToStderr final : public LogSink {
 public:
  explicit LogToStderr(bool json, LogLevel least = LogLevel::warning)
      : json_{json}, least_{least} {}
  void write(const LogEntry& entry) noexcept override;

 private:
  bool json_;
  LogLevel least_;
};

/// Threads: as its store.
class StoreSession {
 public:
  struct Options {
    /// For commands that write to stderr themselves. Null: stderr.
    LogSink* log = nullptr;
    MetricSink* metrics = &no_metrics();
    /// Opens a database on a server for reading only; a file only if this user can't write to it.
    bool only_reads = false;
    /// With `only_reads`: others rely on the output, so no failover may take it back.
    bool reads_durably = false;
    /// Treats a slow answer of a server as a missing one.
    bool is_brief = false;
    /// The keys of personal fields. Null: they stay sealed.
    Keyring* keys = nullptr;
  };

  /// Opens the database of `--db`. Exit 3 if there is no database or no store in it.
  explicit StoreSession(Invocation& invocation) : StoreSession{invocation, Options{}} {}
  StoreSession(Invocation& invocation, const Options& options);

  Store& store() noexcept { return store_; }
  const DatabasePlace& place() const noexcept { return place_; }
  /// The absolute path of the file, or the name of the database on a server.
  const std::string& name() const;
  /// Doesn't attach the outbox.
  bool has_outbox();
  /// Null if the database has no outbox. Attaches it on first use. Exit if only an application
  /// knows its partitioner.
  Outbox* find_outbox();
  /// Exit if there is none, with advice on how to make one.
  Outbox& outbox();
  /// The outbox's partitioner, if it is known here. Without an outbox, the one by stream.
  const Partitioner& partitioner();
  /// For reading and changing the outbox without taking part in appends. Exit if there is none.
  OutboxOperations& operations();
  /// Attaches the participants of appends. If one is unknown here, the append itself fails.
  void prepare_to_append();
  /// Call it after that: inline projectors that are unknown here stop taking part in appends.
  /// Returns their names.
  std::vector<std::string> leave_unknown_behind();
  /// The application's projections. Exit if the application registers none.
  Projections& projections();

 private:
  Invocation& invocation_;
  LogToStderr log_;
  const DatabasePlace place_;
  Store store_;
  const Partitioner* registered_partitioner();
  [[noreturn]] void refuse_without_outbox() const;

  std::optional<TenantMembership> membership_;
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<OutboxOperations> operations_;
  std::unique_ptr<Projections> projections_;
};

/// Makes or migrates the tables of all modules: the roles that use them may not be able to.
void make_tables(Store& store);

/// The registered partitioner with this name: Stela's own or the application's. Null if it is
/// unknown.
const Partitioner* find_partitioner(const App& app, std::string_view name);

}  // namespace stela::tool

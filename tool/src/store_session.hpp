// An open database, with those attached who must take part in its appends.
#pragma once

#include "cli/invocation.hpp"
#include "database_place.hpp"

#include <stela/outbox/operations.hpp>
#include <stela/outbox/outbox.hpp>
#include <stela/projections/projections.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::tool {

/// Writes Stela's own log to stderr, as text or JSON.
/// Threads: any.
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
    /// For those who write there themselves; null: stderr.
    LogSink* log = nullptr;
    MetricSink* metrics = &no_metrics();
    /// A database on a server is opened to be read only, and a file where this user can't write to
    /// it.
    bool only_reads = false;
    /// Of such a command: others rely on what it prints, so that no failover may take it back.
    bool reads_durably = false;
    /// What a server doesn't answer soon counts as not answered.
    bool is_brief = false;
    /// Of personal fields; null: they stay sealed.
    Keyring* keys = nullptr;
  };

  /// Opens what `--db` names. Exit 3 if there is no database or no store in it.
  explicit StoreSession(Invocation& invocation) : StoreSession{invocation, Options{}} {}
  StoreSession(Invocation& invocation, const Options& options);

  Store& store() noexcept { return store_; }
  const DatabasePlace& place() const noexcept { return place_; }
  /// The absolute path of the file, or what names the database on a server.
  const std::string& name() const;
  /// Without attaching it.
  bool has_outbox();
  /// Null if the database has no outbox. It is attached when it is first asked for. Exit if it is
  /// kept in order by a partitioner that only an application knows.
  Outbox* find_outbox();
  /// Exit if there is none, saying how to make one.
  Outbox& outbox();
  /// What the outbox is kept in order by, as far as it is known here; by stream if there is none.
  const Partitioner& partitioner();
  /// For looking at the outbox and changing it, without taking part in appends. Exit if there is
  /// none.
  OutboxOperations& operations();
  /// Attaches what appends need. What only the application knows is missed by the append itself.
  void prepare_to_append();
  /// After it: inline projectors that aren't known here no longer take part in appends. Their
  /// names.
  std::vector<std::string> leave_unknown_behind();
  /// What the application registers. Exit if it isn't one that registers anything.
  Projections& projections();

 private:
  Invocation& invocation_;
  LogToStderr log_;
  const DatabasePlace place_;
  Store store_;
  const Partitioner* registered_partitioner();
  [[noreturn]] void refuse_without_outbox() const;

  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<OutboxOperations> operations_;
  std::unique_ptr<Projections> projections_;
};

/// The registered partitioner's, Stela's own or one of the application's; null if nobody knows it.
const Partitioner* find_partitioner(const App& app, std::string_view name);

}  // namespace stela::tool

// A database of its own on the engine of this run, its broker and its processes, for one finding.
#pragma once

#include "support/engine.hpp"
#include "support/nats_server.hpp"
#include "support/postgres_server.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"
#include "tool/program.hpp"

#include <stela/eventstore.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::test::zoo {

/// Threads: one at a time.
class Habitat {
 public:
  /// With an empty store in it.
  Habitat();

  /// What the program is asked about, and how it publishes. Short times: a state is to be seen.
  std::map<std::string, std::string> settings = {};
  /// A command as it is printed, but for the program's name.
  Ran run(const std::vector<std::string>& words) const;
  std::string well(const std::vector<std::string>& words) const;

  /// Our handle of the same store. Closed by whoever changes the file beneath it.
  Store& store();
  void close() { store_.reset(); }
  /// SQL behind Stela's back: the first value of each row.
  std::vector<std::string> sql(const std::string& text) const;

  void enable_outbox();
  /// Orders, each in a stream of its own, from order-1 on, with so many bytes more than they need.
  void append(int count, int bytes = 0);
  /// As the application that stores them, at another time.
  void append_at(Timestamp when, int schema_version = 1);

  /// The broker, with these settings if it is new.
  NatsServer& broker(const std::string& config = {});
  /// Until nothing is pending, or all that is left is stopped.
  void publish();
  /// Waits until nothing is pending.
  void expect_published() const;
  /// Until it is alive.
  Running& start_worker(const std::string& id);
  Running& worker(const std::string& id) { return *workers_.at(id); }
  /// Another host's, which is well, as rows have it.
  void note_worker();

  /// `stela check` has the code.
  bool has(const std::string& code) const;

  /// Where the store is.
  const TempDir& folder() const noexcept { return dir_; }
  std::string path() const { return path_; }
  /// From now on this one is looked at.
  void move_to(const std::string& name);
  /// Of PostgreSQL, which nobody else needs: from now on the store is there.
  PostgresServer& own_server();

  /// What lives as long as the state.
  std::vector<std::shared_ptr<void>> keeps = {};
  int appended = 0;

  ~Habitat();
  Habitat(const Habitat&) = delete;
  Habitat& operator=(const Habitat&) = delete;

 private:
  RunOptions here() const;

  TempDir dir_ = TempDir::in_memory();
  std::string path_;
  bool has_outbox_ = false;
  std::vector<std::string> schemas_;
  std::optional<PostgresServer> own_server_;
  std::optional<NatsServer> broker_;
  std::optional<Store> store_;
  std::map<std::string, std::unique_ptr<Running>> workers_;
};

/// Microseconds since 1970, in SQL.
std::string in_sql(Timestamp time);
Timestamp ago(std::chrono::microseconds time);

}  // namespace stela::test::zoo

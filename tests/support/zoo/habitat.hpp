// A database on the engine of this run, with its own broker and processes, for one finding.
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
  /// Creates an empty store.
  Habitat();

  /// The program's settings: its database and broker. Times are short, so that states show soon.
  std::map<std::string, std::string> settings = {};
  /// Runs a command, written as in output but without the program's name.
  Ran run(const std::vector<std::string>& words) const;
  std::string well(const std::vector<std::string>& words) const;

  /// The test's handle of the store. Close it before changing the file.
  Store& store();
  void close() { store_.reset(); }
  /// Runs SQL, bypassing Stela. Returns the first value of each row.
  std::vector<std::string> sql(const std::string& text) const;

  void enable_outbox();
  /// Appends orders, each in its own stream from order-1 on, each this many bytes larger than
  /// needed.
  void append(int count, int bytes = 0);
  /// Appends like the storing application, at another time.
  void append_at(Timestamp when, int schema_version = 1);

  /// The broker. A new one gets these settings.
  NatsServer& broker(const std::string& config = {});
  /// Publishes until nothing is pending except in stopped partitions.
  void publish();
  /// Waits until nothing is pending.
  void expect_published() const;
  /// Returns once it is alive.
  Running& start_worker(const std::string& id);
  Running& worker(const std::string& id) { return *workers_.at(id); }
  /// Adds the row of a healthy worker on another host.
  void note_worker();

  /// True if `stela check` reports the code.
  bool has(const std::string& code) const;

  /// The folder of the store.
  const TempDir& folder() const noexcept { return dir_; }
  std::string path() const { return path_; }
  /// Examines this store from now on.
  void move_to(const std::string& name);
  /// Moves the store to a PostgreSQL server of its own.
  PostgresServer& own_server();

  /// Objects that live as long as the state.
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

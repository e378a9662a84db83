// The database that a command works on: a file, or a schema of a PostgreSQL server.
#pragma once

#include "cli/settings.hpp"
#include "write_access.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/log.hpp>

#include <optional>
#include <string>

namespace stela::tool {

/// Advice on the problems that `find_write_problem` reports.
inline constexpr std::string_view way_to_write =
    "free some space, mount it to be written to, or give the permission, whichever it says; "
    "workers "
    "continue by themselves";

/// Threads: any number may use it.
class DatabasePlace {
 public:
  /// How to open the database: the facts of a new one, its keys and its sinks.
  struct Opening {
    bool create = false;
    std::optional<Codec> codec = {};
    std::optional<sqlite::Durability> durability = {};
    bool share_file = false;
    /// For a server: the output stays local, so reads needn't be durable.
    bool is_report = false;
    /// For a server: an answer that takes longer than two seconds counts as missing.
    bool is_brief = false;
    /// The keys of personal fields. Null: they stay sealed.
    Keyring* keys = nullptr;
    LogSink* log = &no_log();
    MetricSink* metrics = &no_metrics();
  };

  /// `location` is the path of a file, or a URL. UsageError if it is neither.
  DatabasePlace(const std::string& location, const Settings& settings);

  bool is_on_server() const noexcept { return server_.has_value(); }
  /// True if the URL lists several servers, among which a primary is searched.
  bool names_several_servers() const noexcept {
    return server_ && server_->url.find(',') != std::string::npos;
  }
  /// The path of the file; empty if there is none.
  const std::string& file() const noexcept { return file_; }
  /// The name in messages, without a password: "shop.db", "app@db1/shop".
  const std::string& shown() const noexcept { return shown_; }
  /// True if the file exists or can't be examined. For a server, only opening it tells.
  bool may_exist() const;

  Store open(const Opening& opening) const;
  /// Opens it for reading only. A server may be a standby, except through a pooler, which hides its
  /// target: that opens as `open` does.
  Store open_to_read(const Opening& opening) const;
  /// Judged by the file system alone.
  std::optional<WriteProblem> find_write_problem() const;

 private:
  struct Server {
    std::string url;
    postgres::Options options;
  };

  sqlite::Options file_options(const Opening& opening) const;
  postgres::Options server_options(const Opening& opening) const;

  std::string file_;
  std::string shown_;
  sqlite::Options of_files_;
  std::optional<Server> server_;
};

}  // namespace stela::tool

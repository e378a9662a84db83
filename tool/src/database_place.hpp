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

/// Out of what `find_write_problem` finds.
inline constexpr std::string_view way_to_write =
    "free some space, mount it to be written to, or give the permission, whichever it says; "
    "workers "
    "continue by themselves";

/// Threads: any number may use it.
class DatabasePlace {
 public:
  /// The facts of a database that is created, and who hears of it.
  struct Opening {
    bool create = false;
    std::optional<Codec> codec = {};
    std::optional<sqlite::Durability> durability = {};
    bool share_file = false;
    /// On a server: nothing of what is read leaves for elsewhere, so that it needn't be durable.
    bool is_report = false;
    /// On a server: what it doesn't answer within two seconds counts as not answered.
    bool is_brief = false;
    /// Of personal fields; null: they stay sealed.
    Keyring* keys = nullptr;
    LogSink* log = &no_log();
    MetricSink* metrics = &no_metrics();
  };

  /// `location` is the path of a file, or a URL. UsageError if it is neither.
  DatabasePlace(const std::string& location, const Settings& settings);

  bool is_on_server() const noexcept { return server_.has_value(); }
  /// A primary is looked for among them.
  bool names_several_servers() const noexcept {
    return server_ && server_->url.find(',') != std::string::npos;
  }
  /// The path of the file; empty if there is none.
  const std::string& file() const noexcept { return file_; }
  /// What names it in messages, without a password: "shop.db", "app@db1/shop".
  const std::string& shown() const noexcept { return shown_; }
  /// Whether there is a file, or something that can't be looked at. Of a server, opening says so.
  bool may_exist() const;

  Store open(const Opening& opening) const;
  /// To be read only. On a server from a standby, too; but through a pooler, which hides what it
  /// leads to, as `open` does.
  Store open_to_read(const Opening& opening) const;
  /// As far as that can be seen in the file system.
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

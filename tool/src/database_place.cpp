#include "database_place.hpp"

#include "cli/exit.hpp"

#include <stela/eventstore/detail/postgres_settings.hpp>
#include <stela/eventstore/detail/sqlite_settings.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace stela::tool {
namespace {

constexpr std::string_view file_prefix = "sqlite:";
constexpr std::chrono::milliseconds brief{2'000};

}  // namespace

DatabasePlace::DatabasePlace(const std::string& location, const Settings& settings) {
  if (stela::is_on_server(location)) {
    server_.emplace(Server{location, {}});
    settings.apply("store", postgres::settings(), server_->options);
    shown_ = postgres::describe(location);
    return;
  }
  settings.apply("store", sqlite::settings(), of_files_);
  file_ = location.starts_with(file_prefix) ? location.substr(file_prefix.size()) : location;
  shown_ = file_;
}

bool DatabasePlace::may_exist() const {
  if (is_on_server()) return true;
  std::error_code error;
  return std::filesystem::exists(std::filesystem::status(file_, error)) ||
         error == std::errc::permission_denied;
}

sqlite::Options DatabasePlace::file_options(const Opening& opening) const {
  sqlite::Options options = of_files_;
  options.create = opening.create;
  options.codec = opening.codec;
  options.durability = opening.durability;
  options.share_file = opening.share_file;
  options.keys = opening.keys;
  options.log = opening.log;
  options.metrics = opening.metrics;
  return options;
}

postgres::Options DatabasePlace::server_options(const Opening& opening) const {
  if (opening.durability || opening.share_file) {
    throw Misuse{"--durability and --share-file are for SQLite; leave them out"};
  }
  postgres::Options options = server_->options;
  options.create = opening.create;
  options.codec = opening.codec;
  options.durable_reads = !opening.is_report;
  if (opening.is_brief) {
    options.connect_timeout = std::min(options.connect_timeout, brief);
    options.reply_timeout = std::min(options.reply_timeout, brief);
    options.busy_timeout = std::min(options.busy_timeout, brief - std::chrono::milliseconds{500});
  }
  options.keys = opening.keys;
  options.log = opening.log;
  options.metrics = opening.metrics;
  return options;
}

Store DatabasePlace::open(const Opening& opening) const {
  if (!is_on_server()) return sqlite::open(file_, file_options(opening));
  return postgres::open(server_->url, server_options(opening));
}

Store DatabasePlace::open_to_read(const Opening& opening) const {
  if (!is_on_server()) {
    sqlite::Options options = file_options(opening);
    options.read_only = true;
    return sqlite::open(file_, options);
  }
  postgres::Options options = server_options(opening);
  options.read_only = true;
  try {
    return postgres::open(server_->url, options);
  } catch (const UsageError&) {
    // The place is a pooler. Any other mistake is reported again by `open`.
    return open(opening);
  }
}

std::optional<WriteProblem> DatabasePlace::find_write_problem() const {
  return is_on_server() ? std::nullopt : tool::find_write_problem(file_);
}

}  // namespace stela::tool

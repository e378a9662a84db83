#include "chaos/shop.hpp"

#include "database/postgres/connection.hpp"
#include "support/raw_sqlite.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <thread>

namespace stela::chaos {

using namespace std::chrono_literals;

namespace {

class Stderr final : public LogSink {
 public:
  void write(const LogEntry& entry) noexcept override {
    std::fprintf(stderr, "%d %.*s: %.*s\n", getpid(), static_cast<int>(entry.name.size()),
                 entry.name.data(), static_cast<int>(entry.message.size()), entry.message.data());
  }
};

/// The machine may be so busy that no server answers in time.
template <class Action>
auto patiently(Action&& action) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (true) {
    try {
      return action();
    } catch (const Error& e) {
      if (!e.is_retryable() || std::chrono::steady_clock::now() > end) throw;
    }
    std::this_thread::sleep_for(100ms);
  }
}

std::string url_of(const Settings& settings, int number) {
  std::ifstream file{settings.urls()};
  std::vector<std::string> urls;
  for (std::string url; std::getline(file, url);) urls.push_back(url);
  return urls.at(static_cast<std::size_t>(number) % urls.size());
}

Store open_on_postgres(const Settings& settings, const ShopOptions& options) {
  return postgres::open(url_of(settings, options.number), {.busy_timeout = 2'000ms,
                                                           .connect_timeout = 2'000ms,
                                                           .reply_timeout = 4'000ms,
                                                           .log = &log_to_stderr(),
                                                           .clock = options.clock,
                                                           .leases_by_server = true});
}

std::vector<std::string> rows_on_postgres(const Settings& settings, const std::string& sql) {
  const auto connected = patiently([&] {
    return std::make_unique<postgres::Connection>(
        postgres::ConnectionOptions{.conninfo = url_of(settings, 0)});
  });
  postgres::Connection& connection = *connected;
  connection.execute("SET search_path = stela, stela_app; SET statement_timeout = 0");
  const postgres::Result found = connection.query_text(sql, {});
  std::vector<std::string> rows;
  for (int row = 0; row < found.rows(); ++row) {
    std::string& text = rows.emplace_back();
    for (int column = 0; column < found.columns(); ++column) {
      if (column > 0) text += '|';
      text += found.is_null(row, column) ? "NULL" : found.bytes(row, column);
    }
  }
  return rows;
}

}  // namespace

LogSink& log_to_stderr() {
  static Stderr log;
  return log;
}

Store open_shop(const Settings& settings, const ShopOptions& options) {
  const auto on_postgres = [&] { return open_on_postgres(settings, options); };
  // Those that have a clock of their own are told when to stop, and open it anew.
  const bool may_wait = options.clock == &system_clock();
  if (settings.is_on_postgres()) return may_wait ? patiently(on_postgres) : on_postgres();
  return sqlite::open(
      settings.database(),
      {.durability = settings.relaxed ? sqlite::Durability::relaxed : sqlite::Durability::full,
       .busy_timeout = 2'000ms,
       .checkpoint_pages = 500,
       .log = &log_to_stderr(),
       .clock = options.clock,
       .vfs = options.vfs});
}

std::vector<std::string> shop_rows(const Settings& settings, const std::string& sql) {
  if (settings.is_on_postgres()) return rows_on_postgres(settings, sql);
  return test::RawSqlite{settings.database()}.rows(sql);
}

std::int64_t shop_number(const Settings& settings, const std::string& sql) {
  return std::stoll(shop_rows(settings, sql).at(0));
}

Store open_effects(const Settings& settings, const ShopOptions& options) {
  if (settings.is_on_postgres()) return open_shop(settings, options);
  return sqlite::open(
      settings.effects(),
      {.durability = sqlite::Durability::relaxed, .log = &log_to_stderr(), .clock = options.clock});
}

std::vector<std::string> effect_rows(const Settings& settings, const std::string& sql) {
  if (settings.is_on_postgres()) return rows_on_postgres(settings, sql);
  return test::RawSqlite{settings.effects()}.rows(sql);
}

std::int64_t effect_number(const Settings& settings, const std::string& sql) {
  return std::stoll(effect_rows(settings, sql).at(0));
}

std::string now_in_sql(const Settings& settings) {
  return settings.is_on_postgres() ? "extract(epoch FROM clock_timestamp()) * 1000000"
                                   : "unixepoch() * 1000000";
}

}  // namespace stela::chaos

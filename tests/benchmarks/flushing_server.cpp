#include "flushing_server.hpp"

#include "measure.hpp"
#include "postgres_shop.hpp"
#include "raw_postgres.hpp"

#include <stdexcept>

namespace stela::bench {
namespace {

using std::chrono::microseconds;

test::PostgresServer::Options options_of(microseconds flush) {
  test::PostgresServer::Options options = postgres_server_options;
  options.durable = false;
  // Of a setting that comes twice the last one counts.
  options.settings += "\nfsync = on\nwal_sync_method = fdatasync";
  options.environment = {std::string{"LD_PRELOAD="} + STELA_SLOW_FLUSH,
                         "STELA_FLUSH_US=" + std::to_string(flush.count())};
  return options;
}

std::string name_of(microseconds flush) {
  const auto count = flush.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + "ms" : std::to_string(count) + "us";
}

}  // namespace

FlushingServer::FlushingServer(microseconds flush)
    : name_{name_of(flush)}, server_{options_of(flush)} {
  RawPostgres database{server_.url()};
  database.prepare("flush", "SELECT pg_logical_emit_message(true, 'bench', '')");
  database.query({"flush"});
  constexpr int flushes = 20;
  taken_ = microseconds{static_cast<std::int64_t>(1e6 / flushes * seconds([&] {
                                                    for (int i = 0; i < flushes; ++i)
                                                      database.query({"flush"});
                                                  }))};
  if (taken_ >= flush) return;
  throw std::runtime_error{std::string{"the server flushes without the delay that "} +
                           STELA_SLOW_FLUSH +
                           " makes; may the user that it runs as read that file?"};
}

}  // namespace stela::bench

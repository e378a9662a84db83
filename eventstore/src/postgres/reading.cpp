#include "postgres/reading.hpp"

#include "postgres_sql/sessions.hpp"

#include <stela/framework/error.hpp>

namespace stela::postgres {

void read_durably(Reading& reading, FunctionRef<std::int64_t(Connection&)> work) {
  constexpr int attempts = 3;
  for (int i = 0; i < attempts; ++i) {
    std::int64_t reached = 0;
    const Uuid run = reading.read([&](Connection& connection) { reached = work(connection); });
    if (reached == 0 || reading.vouch(run, reached)) return;
  }
  throw StoreBusy{"the server was restarted while events were read; read them again"};
}

std::int64_t last_sequence(Connection& connection) {
  return connection.row(sql::last_sequence{}).last();
}

}  // namespace stela::postgres

#include "postgres/server_clock.hpp"

namespace stela::postgres {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds lifetime{1};

}  // namespace

Timestamp ask_for_time(Connection& connection) {
  const Result row =
      connection.query("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", {},
                       "asking for the time");
  return Timestamp{microseconds{row.integer(0, 0)}};
}

Timestamp ServerClock::now(Sessions& sessions) {
  const std::lock_guard lock{mutex_};
  if (answer_ == Timestamp{} || steady_clock::now() - asked_at_ > lifetime) {
    // Other threads wait for the mutex.
    const Sessions::Urgent urgent;
    sessions.read([&](Connection& connection) {
      const auto begun = steady_clock::now();
      answer_ = ask_for_time(connection);
      // The answer was made somewhere on the way there and back.
      asked_at_ = begun + (steady_clock::now() - begun) / 2;
    });
  }
  return answer_ + std::chrono::duration_cast<microseconds>(steady_clock::now() - asked_at_);
}

}  // namespace stela::postgres

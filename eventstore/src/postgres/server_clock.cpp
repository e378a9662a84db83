#include "postgres/server_clock.hpp"

#include "postgres_sql/sessions.hpp"

namespace stela::postgres {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds lifetime{1};

}  // namespace

Timestamp ask_for_time(Connection& connection) {
  return connection.row(sql::clock{}).now();
}

ServerTime ServerTime::ask(Connection& connection) {
  const auto begun = steady_clock::now();
  const Timestamp answer = ask_for_time(connection);
  // The server read its clock at some time between the request and the answer.
  return {begun + (steady_clock::now() - begun) / 2, answer};
}

Timestamp ServerClock::now(Sessions& sessions) {
  const std::lock_guard lock{mutex_};
  if (last_.answer == Timestamp{} || steady_clock::now() - last_.asked_at > lifetime) {
    // Other threads wait for the mutex.
    const Sessions::Urgent urgent;
    sessions.read([&](Connection& connection) { last_ = ServerTime::ask(connection); });
  }
  return last_.answer +
         std::chrono::duration_cast<microseconds>(steady_clock::now() - last_.asked_at);
}

}  // namespace stela::postgres

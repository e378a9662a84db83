#include "postgres/doorbell.hpp"

#include "database/checksum.hpp"
#include "postgres_sql/presence.hpp"

#include <stela/framework/error.hpp>

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <new>
#include <utility>

namespace stela::postgres {
namespace {

/// Includes the schema, because all schemas of a database share its channels.
std::string channel_of(std::string_view schema) {
  return "stela_" + std::to_string(static_cast<std::uint64_t>(bell_lock(schema)));
}

}  // namespace

std::int64_t bell_lock(std::string_view schema) noexcept {
  return static_cast<std::int64_t>(
      database::text_checksum("stela, followers that sleep: " + std::string{schema}));
}

void ring(Connection& connection) noexcept try {
  connection.run(sql::ring{.channel = channel_of(connection.options().schema)});
} catch (const std::exception&) {
  // Followers look once a second anyway.
}

bool wait_for_either(int first, int second, std::chrono::steady_clock::time_point until) noexcept {
  std::array<pollfd, 2> ends{{{first, POLLIN, 0}, {second, POLLIN, 0}}};
  const auto left = std::max<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now(),
                                                       std::chrono::nanoseconds{0});
  const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
  const timespec time{seconds.count(), (left - seconds).count()};
  return ppoll(ends.data(), ends.size(), &time, nullptr) > 0 && ends[0].revents != 0;
}

Connection& Doorbell::connection() {
  if (session_ != nullptr && !(has_got_up() && session_->connection.is_alive())) close();
  if (session_ == nullptr) {
    auto opened = sessions_.open();
    opened->connection.execute("LISTEN " + channel_of(sessions_.options().schema));
    session_ = std::move(opened);
  }
  return session_->connection;
}

std::optional<std::int64_t> Doorbell::lie_down() {
  if (sessions_.options().is_pooled || sessions_.options().is_read_only) return {};
  try {
    Connection& sleeping = connection();
    Connection::Pipeline pipeline{sleeping};
    std::optional<Place<sql::sleep_by_bell>> bell;
    if (!is_asleep_) {
      bell = pipeline.add(sql::sleep_by_bell{.bell = bell_lock(sleeping.options().schema)});
    }
    // A separate statement, to see everything that was committed before the lock was granted.
    const auto last = pipeline.add(sql::last_sequence{});
    auto results = pipeline.run_all("listening for appends");
    if (bell) is_asleep_ = bell->row(results).is_asleep();
    if (!is_asleep_) return {};
    return last.row(results).last();
  } catch (const Error&) {
    close();
    throw;
  }
}

void Doorbell::close() noexcept {
  session_.reset();
  is_asleep_ = is_getting_up_ = false;
}

bool Doorbell::sleep(int other, Time until) {
  PGconn* const handle = session_->connection.handle();
  if (!wait_for_either(PQsocket(handle), other, until)) return false;
  const bool is_lost = PQconsumeInput(handle) == 0;
  while (PGnotify* const notice = PQnotifies(handle)) PQfreemem(notice);
  if (is_lost) close();
  return true;
}

void Doorbell::get_up() noexcept {
  if (!is_asleep_) return;
  is_asleep_ = false;
  try {
    const std::string unlock = "SELECT pg_advisory_unlock_shared(" +
                               std::to_string(bell_lock(sessions_.options().schema)) + ")";
    PGconn* const handle = session_->connection.handle();
    is_getting_up_ = PQsendQuery(handle, unlock.c_str()) != 0 && PQflush(handle) >= 0;
  } catch (const std::bad_alloc&) {
    is_getting_up_ = false;
  }
  if (!is_getting_up_) close();
}

bool Doorbell::has_got_up() noexcept {
  if (!std::exchange(is_getting_up_, false)) return true;
  PGconn* const handle = session_->connection.handle();
  const Time deadline = std::chrono::steady_clock::now() + sessions_.options().reply_timeout;
  while (PQisBusy(handle) != 0) {
    if (!wait_for_either(PQsocket(handle), -1, deadline) || PQconsumeInput(handle) == 0) {
      return false;
    }
  }
  const Result answer{PQgetResult(handle)};
  const Result end{PQgetResult(handle)};
  return !answer.is_error() && end.get() == nullptr;
}

}  // namespace stela::postgres

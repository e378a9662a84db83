#include "postgres/presence.hpp"

#include "database/checksum.hpp"

#include <stela/framework/error.hpp>

#include <string>
#include <utility>

namespace stela::postgres {
namespace {

/// Advisory locks are known by two integers, here positive ones: of the store, and of the presence.
constexpr std::int64_t most = 0x7fffffff;

std::int64_t lock_of(const std::string& schema) noexcept {
  const std::uint64_t hash = database::text_checksum("stela, presences: " + schema);
  return static_cast<std::int64_t>(hash & most);
}

std::int64_t random_number() {
  const Uuid id = make_uuid();
  std::int64_t number = 0;
  for (std::size_t i = 12; i < 16; ++i) number = number << 8 | std::int64_t{id.bytes()[i]};
  return number & most;
}

}  // namespace

class Presences::Presence final : public database::Presence {
 public:
  explicit Presence(Presences& all)
      : all_{all},
        number_{all.sessions_.options().is_pooled ? -random_number() - 1 : random_number()} {}
  ~Presence() override { all_.drop(number_); }

  std::int64_t number() const noexcept override { return number_; }
  void renew() override {
    if (number_ >= 0) all_.hold(number_);
  }

 private:
  Presences& all_;
  const std::int64_t number_;
};

std::unique_ptr<database::Presence> Presences::appear() {
  auto presence = std::make_unique<Presence>(*this);
  presence->renew();
  return presence;
}

void Presences::hold(std::int64_t number) {
  const std::lock_guard lock{mutex_};
  numbers_.try_emplace(number, false);
  find_connection();
  for (auto& [each, is_locked] : numbers_) {
    if (is_locked) continue;
    Parameters parameters;
    parameters.add(lock_of(sessions_.options().schema)).add(each);
    const Result locked =
        session_->connection.query("SELECT pg_try_advisory_lock($1::integer, $2::integer)",
                                   std::move(parameters), "telling that this process lives");
    // Otherwise the server hasn't noticed that the other connection is lost, and shows that one;
    // the next time it may have.
    is_locked = locked.integer(0, 0) != 0;
  }
}

void Presences::find_connection() {
  if (session_ != nullptr) {
    try {
      session_->connection.query("SELECT 1");
      return;
    } catch (const ConnectionLost&) {
      session_.reset();
    }
  }
  for (auto& [each, is_locked] : numbers_) is_locked = false;
  session_ = sessions_.open();
}

void Presences::drop(std::int64_t number) noexcept try {
  if (!maker_.is_this()) return;
  const std::lock_guard lock{mutex_};
  const auto found = numbers_.find(number);
  if (found == numbers_.end()) return;
  const bool is_locked = found->second;
  numbers_.erase(found);
  if (numbers_.empty()) return session_.reset();
  if (!is_locked || session_ == nullptr) return;
  Parameters parameters;
  parameters.add(lock_of(sessions_.options().schema)).add(number);
  session_->connection.query("SELECT pg_advisory_unlock($1::integer, $2::integer)",
                             std::move(parameters), "telling that a worker has ended");
} catch (...) {
  // It ends with the connection, at the latest when the last of them is gone.
}

std::optional<bool> is_present(Sessions& sessions, std::int64_t number) noexcept try {
  // One that is behind a pooler.
  if (number < 0) return std::nullopt;
  std::optional<bool> is_there;
  sessions.read([&](Connection& connection) {
    // The locks are the primary's.
    if (connection.is_standby()) return is_there.reset();
    Parameters parameters;
    parameters.add(lock_of(connection.options().schema)).add(number);
    const Result found = connection.query(
        "SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
        "AND classid = $1::bigint::oid AND objid = $2::bigint::oid",
        std::move(parameters), "looking for a process");
    is_there = found.rows() > 0;
  });
  return is_there;
} catch (...) {
  return std::nullopt;
}

}  // namespace stela::postgres

#include "postgres/presence.hpp"

#include "database/checksum.hpp"
#include "postgres_sql/presence.hpp"

#include <stela/framework/error.hpp>

#include <string>
#include <utility>

namespace stela::postgres {
namespace {

/// An advisory lock has two integers, positive ones here: the store's and the presence's.
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
    const sql::appear presence{.store = lock_of(sessions_.options().schema), .number = each};
    // If it fails, the server hasn't noticed yet that the other connection is lost, and that one's
    // lock still counts. The next attempt may succeed.
    is_locked = session_->connection.row(presence).is_locked();
  }
}

void Presences::find_connection() {
  if (session_ != nullptr) {
    try {
      session_->connection.run(sql::is_alive{});
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
  session_->connection.run(
      sql::disappear{.store = lock_of(sessions_.options().schema), .number = number});
} catch (...) {
  // The lock ends with the connection, at the latest when the last presence ends.
}

std::optional<bool> is_present(Sessions& sessions, std::int64_t number) noexcept try {
  // The presence is behind a pooler.
  if (number < 0) return std::nullopt;
  std::optional<bool> is_there;
  sessions.read([&](Connection& connection) {
    // Only the primary has the locks.
    if (connection.is_standby()) return is_there.reset();
    const sql::is_present lock{.store = lock_of(connection.options().schema), .number = number};
    is_there = connection.run(lock) > 0;
  });
  return is_there;
} catch (...) {
  return std::nullopt;
}

}  // namespace stela::postgres

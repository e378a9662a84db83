// A follower's lease, as stored in its row: its owner, its end, and when to renew it.
#pragma once

#include "database/database.hpp"
#include "database/presence.hpp"

#include <stela/eventstore/store.hpp>
#include <stela/framework/clock.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/log.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stela::follow {

/// The lease on a row's work, or a worker's heartbeat. It is judged by its own length, whatever the
/// length of the reader's leases.
struct StoredLease {
  Timestamp until = {};
  /// How long it is when it is taken or renewed.
  std::chrono::microseconds length{0};
  /// Of its holder; unset if the holder has none.
  std::optional<std::int64_t> presence = {};
};

/// It ends further away than its length allows, even if two clocks differ by that length: it was
/// taken by a clock that was wrong.
inline bool is_absurd(const StoredLease& lease, Timestamp now) noexcept {
  return (lease.until - now) / 2 > lease.length;
}

/// The lease has run out or is absurd: its owner may renew it, and anybody may take it.
inline bool is_over(const StoredLease& lease, Timestamp now) noexcept {
  return lease.until <= now || is_absurd(lease, now);
}

/// Its owner has visibly ended, so nobody has to wait until the lease runs out.
inline bool is_orphaned(const StoredLease& lease, const database::Database& database) noexcept {
  return lease.presence && database.is_present(*lease.presence) == false;
}

/// The lease has no owner, or is over.
inline bool is_free(std::string_view owner, const StoredLease& lease, Timestamp now) noexcept {
  return owner.empty() || is_over(lease, now);
}

/// The same, and true if its owner has visibly ended.
inline bool is_free(std::string_view owner, const StoredLease& lease, Timestamp now,
                    const database::Database& database) noexcept {
  return is_free(owner, lease, now) || is_orphaned(lease, database);
}

/// The values that a new owner writes.
struct Term {
  std::string_view owner;
  std::chrono::microseconds length;
  Timestamp now;
  /// The owner's presence, if it has one.
  std::optional<std::int64_t> presence = {};

  Timestamp until() const noexcept { return now + length; }
  StoredLease stored() const noexcept { return {until(), length, presence}; }
};

/// When an owner renews its leases: after a third of their length, and at once if the clock was set
/// back. Its changes in the database name the epoch, so it needs no margin before their end.
class Renewal {
 public:
  explicit Renewal(std::chrono::microseconds length) noexcept : length_{length} {}

  std::chrono::microseconds interval() const noexcept { return length_ / 3; }
  bool is_due(Timestamp now) const noexcept { return now >= last_ + interval() || now < last_; }
  void note(Timestamp now) noexcept { last_ = now; }
  /// Forgets the last renewal: it holds no lease any more.
  void forget() noexcept { last_ = {}; }

 private:
  const std::chrono::microseconds length_;
  Timestamp last_ = {};
};

/// Shows others that a follower still runs. Threads: one at a time.
class Sign {
 public:
  /// Logs under `log_name`, for `worker`. `store` must outlive it.
  Sign(Store& store, std::string_view log_name, std::string worker)
      : store_{store}, log_name_{log_name}, worker_{std::move(worker)} {}

  /// Call it whenever leases are taken or renewed, because the sign ends with its session or file.
  /// If others can't see it, leases still hold, and run out by themselves.
  void show() {
    is_shown_ = false;
    try {
      if (!presence_) presence_ = store_.database().appear();
      presence_->renew();
      is_shown_ = true;
    } catch (const Error& e) {
      const std::array fields{LogEntry::Field{"worker", worker_}};
      const std::string what = std::string{"others can't see that this process runs: "} + e.what();
      store_.conventions().log->write({LogLevel::warning, log_name_, what, fields});
    }
  }

  /// The number for leases; unset if others can't see the sign.
  std::optional<std::int64_t> number() const noexcept {
    return is_shown_ ? std::optional{presence_->number()} : std::nullopt;
  }

 private:
  Store& store_;
  const std::string_view log_name_;
  const std::string worker_;
  std::unique_ptr<database::Presence> presence_;
  bool is_shown_ = false;
};

}  // namespace stela::follow

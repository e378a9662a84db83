// The lease of a follower, as its row tells: who has it, when it is over, when it is renewed.
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

/// The lease of whoever works on what a row stands for, or a worker's heartbeat. It is judged by
/// its own length, whatever the length of the reader's leases is.
struct StoredLease {
  Timestamp until = {};
  /// How long it is when it is taken or renewed; unset if an older Stela wrote it.
  std::optional<std::chrono::microseconds> length = {};
  /// Of its holder; unset if the holder has none, or an older Stela wrote the lease.
  std::optional<std::int64_t> presence = {};
};

/// As a row has it: microseconds.
inline std::optional<std::chrono::microseconds> length_of(
    std::optional<std::int64_t> stored) noexcept {
  if (!stored) return std::nullopt;
  return std::chrono::microseconds{*stored};
}

/// What a lease may last whose length isn't known. So long a process of an older Stela is believed.
constexpr std::chrono::hours longest_unknown_length{1};

/// It ends further away than its length allows, even if two clocks differ by that length: it was
/// taken by a clock that was wrong.
inline bool is_absurd(const StoredLease& lease, Timestamp now) noexcept {
  return (lease.until - now) / 2 > lease.length.value_or(longest_unknown_length);
}

/// It has run out, or is absurd: its holder may renew it, and anybody may take it.
inline bool is_over(const StoredLease& lease, Timestamp now) noexcept {
  return lease.until <= now || is_absurd(lease, now);
}

/// Its holder is seen to have ended, so nobody has to wait until the lease runs out.
inline bool is_orphaned(const StoredLease& lease, const database::Database& database) noexcept {
  return lease.presence && database.is_present(*lease.presence) == false;
}

/// Nobody has what the lease is of: its owner's name is empty, or the lease is over.
inline bool is_free(std::string_view owner, const StoredLease& lease, Timestamp now) noexcept {
  return owner.empty() || is_over(lease, now);
}

/// The same, and true if its owner is seen to have ended.
inline bool is_free(std::string_view owner, const StoredLease& lease, Timestamp now,
                    const database::Database& database) noexcept {
  return is_free(owner, lease, now) || is_orphaned(lease, database);
}

/// What whoever takes a lease writes.
struct Term {
  std::string_view owner;
  std::chrono::microseconds length;
  Timestamp now;
  /// The owner's, if it has one.
  std::optional<std::int64_t> presence = {};

  Timestamp until() const noexcept { return now + length; }
  StoredLease stored() const noexcept { return {until(), length, presence}; }
};

/// When a holder renews its leases: after a third of their length, and at once if the clock was put
/// back. What it does in the database names the epoch, so it needs no margin before their end.
class Renewal {
 public:
  explicit Renewal(std::chrono::microseconds length) noexcept : length_{length} {}

  std::chrono::microseconds interval() const noexcept { return length_ / 3; }
  bool is_due(Timestamp now) const noexcept { return now >= last_ + interval() || now < last_; }
  void note(Timestamp now) noexcept { last_ = now; }
  /// It holds nothing any more.
  void forget() noexcept { last_ = {}; }

 private:
  const std::chrono::microseconds length_;
  Timestamp last_ = {};
};

/// By which others see that a follower still runs. Threads: one at a time.
class Sign {
 public:
  /// It logs under that name, for that worker. `store` must outlive it.
  Sign(Store& store, std::string_view log_name, std::string worker)
      : store_{store}, log_name_{log_name}, worker_{std::move(worker)} {}

  /// Whenever leases are taken or renewed: what others see goes with a session or a file. Where
  /// they can't see it, its leases hold all the same, and end by themselves.
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

  /// What leases name; unset if others can't see it.
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

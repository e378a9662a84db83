#include "connection.hpp"

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace stela::nats {

class OpenConnection {
 public:
  explicit OpenConnection(ConnectionHandle handle) : handle_{std::move(handle)} {
    natsStatistics* raw = nullptr;
    check(natsStatistics_Create(&raw), "counting messages");
    statistics_.reset(raw);
  }

  natsConnection* get() const noexcept { return handle_.get(); }

  void end(natsSubscription* raw) noexcept try {
    if (stela::detail::count_forks() != forks_) return;
    natsSubscription_Unsubscribe(raw);
    // No more messages find the subscription, and those that did are counted here.
    const std::uint64_t last = messages();
    std::erase_if(ended_, [&](const Ended& each) { return each.last < last; });
    ended_.reserve(ended_.size() + 1);
    ended_.push_back({SubscriptionHandle{raw}, last});
  } catch (const std::bad_alloc&) {
    // Leaking it is better than freeing it too early.
  }

 private:
  using StatisticsHandle =
      std::unique_ptr<natsStatistics, Destroyer<natsStatistics, natsStatistics_Destroy>>;

  struct Ended {
    SubscriptionHandle subscription;
    /// The last message that may have found the subscription.
    std::uint64_t last;
  };

  /// How many messages the reading thread has begun to process.
  std::uint64_t messages() {
    std::uint64_t count = 0;
    natsConnection_GetStats(get(), statistics_.get());
    natsStatistics_GetCounts(statistics_.get(), &count, nullptr, nullptr, nullptr, nullptr);
    return count;
  }

  const int forks_ = stela::detail::count_forks();
  StatisticsHandle statistics_;
  std::vector<Ended> ended_;
  /// Destroyed first: closing it waits for its reading thread.
  ConnectionHandle handle_;
};

void Unsubscribe::operator()(natsSubscription* subscription) const noexcept {
  connection_->end(subscription);
}

Connection::Connection(ConnectionHandle handle)
    : open_{std::make_shared<OpenConnection>(std::move(handle))} {}

natsConnection* Connection::get() const noexcept {
  return open_ ? open_->get() : nullptr;
}

Subscription Connection::subscribe(const std::string& subject) const {
  natsSubscription* raw = nullptr;
  check(natsConnection_SubscribeSync(&raw, get(), subject.c_str()), "subscribing to " + subject);
  return Subscription{raw, Unsubscribe{open_}};
}

Subscription Connection::subscribe(const std::string& subject, natsMsgHandler handle,
                                   void* closure) const {
  natsSubscription* raw = nullptr;
  check(natsConnection_Subscribe(&raw, get(), subject.c_str(), handle, closure),
        "subscribing to " + subject);
  return Subscription{raw, Unsubscribe{open_}};
}

std::uint64_t received_bytes(natsConnection* connection) {
  natsStatistics* raw = nullptr;
  check(natsStatistics_Create(&raw), "counting a connection's bytes");
  const std::unique_ptr<natsStatistics, decltype(&natsStatistics_Destroy)> counts{
      raw, &natsStatistics_Destroy};
  std::uint64_t bytes = 0;
  check(natsConnection_GetStats(connection, raw), "counting a connection's bytes");
  check(natsStatistics_GetCounts(raw, nullptr, &bytes, nullptr, nullptr, nullptr),
        "counting a connection's bytes");
  return bytes;
}

}  // namespace stela::nats

// A stream with several replicas, read from the server that leads it.
#pragma once

#include "connection.hpp"
#include "handles.hpp"
#include "replies.hpp"

#include <stela/framework/detail/function_ref.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace stela::nats {

/// No reply, or one that says that nobody leads: there may be a leader in a moment.
class Leaderless : public BrokerFailed {
 public:
  using BrokerFailed::BrokerFailed;
};

/// Runs `work` again while it throws Leaderless, after 0.1 to 1.6 s, five times; BrokerFailed after
/// that. It sleeps, as reading has no stop to heed. `stela::retry` repeats what lost a race in the
/// store, and a broker's failure isn't that.
template <class Work>
decltype(auto) with_patience(Work&& work) {
  using std::chrono::milliseconds;
  constexpr milliseconds longest{1'600};
  for (milliseconds pause{100};; pause *= 2) {
    try {
      return work();
    } catch (const Leaderless& e) {
      if (pause > longest) {
        throw BrokerFailed{std::string{e.what()} +
                           ". The stream may have no leader: run this again when it has one"};
      }
    }
    std::this_thread::sleep_for(pause);
  }
}

/// Of a replicated stream a consumer may be served by a replica that lags, where what was published
/// last seems to be missing. STREAM.MSG.GET is answered by the leader alone.
/// Threads: one at a time.
class LeaderReads {
 public:
  using Take = FunctionRef<void(const StoredMessage&)>;

  /// `api` with the dot behind it. `typical_bytes` is what a message weighs before any was read.
  LeaderReads(Connection connection, const std::string& api, std::string stream,
              std::chrono::milliseconds timeout, std::uint64_t typical_bytes);

  /// Calls `take` for each message from `first` to `last`, in order. BrokerFailed if the leader
  /// doesn't answer for one of them: what it says that it doesn't have is passed over.
  void read(std::uint64_t first, std::uint64_t last, Take take);

 private:
  using Reply = std::variant<StoredMessage, ApiError>;
  /// Those that haven't come yet are unset.
  using Replies = std::vector<std::optional<Reply>>;

  std::size_t room_for(std::uint64_t messages) const noexcept;
  Replies ask(std::uint64_t first, std::size_t count);
  void ask(std::uint64_t sequence);
  void receive(std::uint64_t first, Replies& replies);
  MessageHandle next_reply();
  Reply parse(natsMsg* reply);

  const Connection connection_;
  const std::string stream_;
  const std::string subject_;
  const std::chrono::milliseconds timeout_;
  const std::string doing_{"reading the JetStream stream '" + stream_ + "' from its leader"};
  const std::string inbox_;
  /// Of the requests of one try: the sequence comes after it.
  std::string reply_to_;
  std::uint64_t tries_ = 0;
  const Subscription subscription_{connection_.subscribe(inbox_ + '>')};
  std::size_t message_bytes_;
  std::size_t most_ = most_messages_asked;
};

}  // namespace stela::nats

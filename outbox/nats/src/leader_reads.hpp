// Reads a stream with several replicas from its leader.
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

/// No reply, or one saying that the stream has no leader: one may be elected soon.
class Leaderless : public BrokerFailed {
 public:
  using BrokerFailed::BrokerFailed;
};

/// Repeats `work` while it throws Leaderless, five times after pauses of 0.1 to 1.6 s; then
/// BrokerFailed. It can simply sleep, because readers aren't stopped. `stela::retry` only repeats
/// after lost races in the store, not after a broker's failure.
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

/// A consumer of a replicated stream may be served by a lagging replica, where the latest messages
/// seem to be missing. Only the leader answers STREAM.MSG.GET.
/// Threads: one at a time.
class LeaderReads {
 public:
  using Take = FunctionRef<void(const StoredMessage&)>;

  /// `api` ends with a dot. `typical_bytes` is the assumed size of a message until one is read.
  LeaderReads(Connection connection, const std::string& api, std::string stream,
              std::chrono::milliseconds timeout, std::uint64_t typical_bytes);

  /// Calls `take` for each message from `first` to `last`, in order, and skips messages that the
  /// leader doesn't have. BrokerFailed if the leader doesn't answer for one of them.
  void read(std::uint64_t first, std::uint64_t last, Take take);

 private:
  using Reply = std::variant<StoredMessage, ApiError>;
  /// Unset for replies that haven't arrived yet.
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
  /// The reply subject of this try's requests, before the sequence.
  std::string reply_to_;
  std::uint64_t tries_ = 0;
  const Subscription subscription_{connection_.subscribe(inbox_ + '>')};
  std::size_t message_bytes_;
  std::size_t most_ = most_messages_asked;
};

}  // namespace stela::nats

// A store with an outbox and a broker, for tests of what operators do.
#pragma once

#include "outbox/file_broker.hpp"
#include "support/histories.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/outbox.hpp>
#include <stela/testing/manual_clock.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

/// Appends, relays and breaks things in few words. Its clock stands still until it is moved.
class Shop {
 public:
  explicit Shop(const OutboxOptions& outbox_options = {}, RelayOptions relay_options = {},
                const std::string& vfs = {})
      : relay_options_{std::move(relay_options)},
        store{sqlite::open(dir.file("shop.db"), {.durability = sqlite::Durability::relaxed,
                                                 .busy_timeout = std::chrono::milliseconds{50},
                                                 .log = &log,
                                                 .clock = &clock,
                                                 .vfs = vfs})},
        outbox{store, outbox_options},
        broker{dir.file("broker.db"), outbox.fence()},
        operations{store, {.who = "ann"}} {
    broker.refuse = [this](const OutgoingMessage& message) -> std::optional<Answer::Kind> {
      if (too_large.contains(message.event.sequence.value())) return Answer::Kind::refused;
      if (rejected.contains(message.event.sequence.value())) return Answer::Kind::rejected;
      return std::nullopt;
    };
  }

  /// One event that is to be published.
  void append(std::string_view stream, std::string payload = "{}") {
    test::append(store, stream, {NewEvent{"placed", 1, true, std::move(payload)}});
  }
  /// One event for each stream named.
  void append_all(std::initializer_list<std::string_view> streams) {
    for (const std::string_view stream : streams) append(stream);
  }

  /// What a relay does that comes, publishes what it can, and stays.
  RelayTick relay() {
    if (!relay_) relay_.emplace(outbox, broker, relay_options_);
    clock.advance(relay_options_.idle_backoff);
    return relay_->run_once();
  }
  /// Relays until its one partition is stopped. A loss is looked at again before it is believed.
  void relay_until_stopped() {
    relay();
    for (int look = 0; look < 4; ++look) {
      if (operations.status().partitions.front().stopped) return;
      clock.advance(relay_options_.publish_timeout);
      relay();
    }
  }
  /// The relay ends, and is forgotten.
  void lose_relay() {
    relay_.reset();
    clock.advance(relay_options_.lease_ttl + relay_options_.heartbeat_ttl);
  }

  /// "1 order-1 parked refused": what `list` finds.
  std::vector<std::string> list(const MessageQuery& query = {}) {
    std::vector<std::string> lines;
    for (const OutboxMessage& message : operations.list(query)) lines.push_back(line(message));
    return lines;
  }
  static std::string line(const OutboxMessage& message) {
    std::string text = std::to_string(message.sequence.value()) + ' ' + message.stream + ' ';
    text += to_string(message.state);
    if (message.reason) text += ' ' + std::string{to_string(*message.reason)};
    if (message.redelivery > 0) text += " r" + std::to_string(message.redelivery);
    return text;
  }
  /// "2 pending, 1 parked, 3 published": what isn't 0 of the totals.
  std::string totals() {
    const OutboxStatus status = operations.status();
    std::string text;
    const auto add = [&](std::int64_t count, std::string_view what) {
      if (count == 0) return;
      if (!text.empty()) text += ", ";
      text += std::to_string(count) + ' ';
      text += what;
    };
    add(status.pending, "pending");
    add(status.redeliveries, "to be sent again");
    add(status.parked, "parked");
    add(status.discarded, "discarded");
    add(status.published, "published");
    add(status.stopped, "stopped");
    return text;
  }
  /// "ann retry order-1: 1 message, 3": what was recorded, the oldest first.
  std::vector<std::string> actions() {
    std::vector<std::string> lines;
    for (const OperatorAction& action : operations.actions()) {
      lines.insert(lines.begin(), action.who + ' ' + action.what + ' ' + action.detail);
    }
    return lines;
  }
  /// "retry order-1: 1 message, 3": what the last action did, step by step.
  std::vector<std::string> steps(int limit = 100) {
    std::vector<std::string> lines;
    for (const OperatorAction& step :
         operations.actions({.limit = limit,
         .direction = Direction::forward,
         .items_of = operations.actions({.limit = 1}).front().number})) {
      lines.push_back(step.what + ' ' + step.detail);
    }
    return lines;
  }
  RawSqlite raw() { return RawSqlite{dir.file("shop.db")}; }

  TempDir dir = TempDir::in_memory();
  testing::ManualClock clock;
  RecordingLog log;

 private:
  RelayOptions relay_options_;

 public:
  Store store;
  Outbox outbox;
  FileBroker broker;
  OutboxOperations operations;
  /// What the broker will never take, and what it doesn't take as long as it stands here.
  std::set<std::int64_t> too_large;
  std::set<std::int64_t> rejected;

 private:
  std::optional<Relay> relay_;
};

}  // namespace stela::test

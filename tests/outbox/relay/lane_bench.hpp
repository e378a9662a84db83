// A lane of the relay alone, between a store and a broker that do what a test says and write down
// what they are asked.
#pragma once

#include "relay/core.hpp"

#include <stela/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::test {

using Kind = Answer::Kind;

/// What the lane did, in order: "send 2 after 1, park 2 (refused)".
struct Journal {
  void write(const std::string& line) { text += (text.empty() ? "" : ", ") + line; }
  /// What was written since the last call.
  std::string read() { return std::exchange(text, {}); }
  std::string text = {};
};

/// The event's id, from its number alone.
EventId id_of(std::int64_t sequence);

/// The outbox of one partition.
class ScriptedStore final : public relay::OutboxPort {
 public:
  explicit ScriptedStore(Journal& journal) noexcept : journal_{journal} {}

  /// Lets an event wait; an event is told by its number, and `stream` says which others it follows.
  relay::PendingMessage& let_wait(std::int64_t sequence, std::int64_t stream,
                                  std::string_view payload = "{}");

  /// What a new owner finds; it follows what owners note.
  relay::Standing standing{.epoch = 7};
  /// Somebody else took the partition over.
  bool is_taken_over = false;
  /// The next change fails.
  bool is_busy = false;
  /// Every change fails, and each is counted.
  bool is_full = false;
  int refused = 0;
  /// The epochs under which the partition was changed.
  std::vector<std::int64_t> epochs;
  int messages_read = 0;
  relay::Trouble last_trouble;
  std::string stopped_detail;
  /// In the order in which they were parked.
  std::vector<std::int64_t> parked;

  std::string store_id() const override { return "the-store"; }
  int heartbeat(std::string_view, std::chrono::microseconds, const relay::BrokerView&) override {
    return 0;
  }
  void leave(std::string_view) noexcept override {}
  relay::Overview look() override { return {}; }
  std::optional<relay::Standing> acquire(PartitionId, std::string_view,
                                         std::chrono::microseconds) override;
  std::optional<relay::Standing> acquire_lost(PartitionId partition, std::string_view worker,
                                              std::chrono::microseconds ttl) override {
    return acquire(partition, worker, ttl);
  }
  bool renew(const relay::Lease&, std::chrono::microseconds) override { return !is_taken_over; }
  void release(const relay::Lease& lease) override;
  std::unique_ptr<relay::PendingBatch> next(PartitionId, const relay::Cursor& cursor,
                                            const relay::BatchLimit& limit) override;
  std::vector<EventId> ids_of(std::span<const GlobalSequence> sequences) override;
  bool advance(const relay::Lease& lease, const relay::Advance& advance, bool durable) override;
  bool note(const relay::Lease& lease, const relay::Trouble& trouble) override;
  bool stop(const relay::Lease& lease, StopReason reason, std::string_view detail) override;
  bool continue_lost(const relay::Lease& lease) override;

 private:
  bool change(const relay::Lease& lease);
  void take(GlobalSequence first, GlobalSequence last, std::int64_t redelivery);

  Journal& journal_;
  EventKind kind_{1, "thing.happened", 1, true};
  StreamId stream_ = StreamId::of("thing", "1");
  std::map<std::int64_t, StoredEvent> events_;
  /// What is sent again first, and the rest in order.
  std::map<std::pair<bool, std::int64_t>, relay::PendingMessage> waiting_;
  std::map<std::int64_t, std::int64_t> first_parked_;
};

/// Keeps what was sent; the test answers.
class ScriptedPublisher final : public Publisher {
 public:
  explicit ScriptedPublisher(Journal& journal) noexcept : journal_{journal} {}

  struct Sent {
    std::uint64_t request = 0;
    std::uint64_t position = 0;
    std::string message_id = {};
    std::string after_id = {};
    GlobalSequence previous = {};
    std::optional<GenerationMark> generation = {};
  };
  /// The last one of each event.
  std::map<std::int64_t, Sent> sent;
  std::uint64_t question = 0;
  /// Called first. What they throw goes through the lane, as if its worker died.
  std::function<void(std::int64_t sequence)> on_publish = [](std::int64_t) {};
  std::function<void()> on_flush = [] {};

  bool can(Fence) const noexcept override { return true; }
  void connect(std::uint64_t, AnswerSink&) override {}
  void disconnect() noexcept override {}
  void publish(const OutgoingMessage& message) override;
  void read_back(std::uint64_t request, PartitionId, std::uint64_t from) override;
  void probe(std::uint64_t) override {}
  void flush() override { on_flush(); }

 private:
  Journal& journal_;
};

/// A message at the broker, as a read-back tells of it.
FoundMessage ours(std::int64_t sequence, std::uint64_t position);

/// A lane of type `L` and all that it needs.
template <class L>
class LaneBench : private relay::Observer, private Random {
 public:
  explicit LaneBench(Fence fence = Fence::stream)
      : core_{.options = options,
              .fence = fence,
              .worker = options.worker,
              .store_id = "the-store",
              .store = store,
              .publisher = publisher,
              .clock = clock,
              .random = *this,
              .observer = *this,
              .session = 1},
        lane{core_, PartitionId{0}} {}

  Journal journal;
  testing::ManualClock clock;
  RelayOptions options{.worker = "me", .retry_jitter = 0, .max_attempts = 2};
  ScriptedStore store{journal};
  ScriptedPublisher publisher{journal};
  /// What was reported, as "kind: text".
  std::vector<std::string> incidents;

 private:
  relay::Core core_;

 public:
  L lane;

  /// Lets events wait, each of a stream of its own.
  void let_wait(std::initializer_list<std::int64_t> sequences) {
    for (const std::int64_t sequence : sequences) store.let_wait(sequence, sequence);
  }
  /// Takes the partition over, and sends what waits as soon as the broker said that it has nothing.
  void begin() {
    lane.acquire();
    if (publisher.question != 0) find({});
    run();
    journal.read();
  }
  /// As above, with events that wait, each of a stream of its own.
  void begin_with(std::initializer_list<std::int64_t> sequences) {
    let_wait(sequences);
    begin();
  }
  /// What a worker does when something happened.
  void run() {
    lane.on_time();
    int budget = options.window;
    lane.pump(budget);
    lane.mark_if_due();
  }
  void pass(std::chrono::milliseconds time) {
    clock.advance(time);
    lane.renew();
    run();
  }

  void answer(std::int64_t sequence, Kind kind, const std::string& detail = "") {
    const auto& sent = publisher.sent.at(sequence);
    lane.on_answer({.request = sent.request,
                    .kind = kind,
                    .broker_sequence = kind == Kind::stored ? sent.position : 0,
                    .detail = detail});
    run();
  }
  /// Elsewhere than right behind the one before.
  void store_at_broker_as(std::int64_t sequence, std::uint64_t position) {
    lane.on_answer({.request = publisher.sent.at(sequence).request,
                    .kind = Kind::stored,
                    .broker_sequence = position});
    run();
  }
  void store_at_broker(std::initializer_list<std::int64_t> sequences) {
    for (const std::int64_t sequence : sequences) answer(sequence, Kind::stored);
  }
  /// Answers the read-back: these stand at the broker, from the asked-for position on.
  void find(std::vector<FoundMessage> found) {
    const std::uint64_t last = found.empty() ? 0 : found.back().broker_sequence;
    find_up_to(last, std::move(found));
  }
  void find_up_to(std::uint64_t last, std::vector<FoundMessage> found) {
    lane.on_answer({.request = publisher.question,
                    .kind = Kind::read_back,
                    .first_sequence = 1,
                    .last_sequence = last,
                    .found = std::move(found)});
  }
  /// These are the first of what stands there.
  void find_part(std::vector<FoundMessage> found) {
    const std::uint64_t last = found.back().broker_sequence;
    lane.on_answer({.request = publisher.question,
                    .kind = Kind::read_back,
                    .first_sequence = 1,
                    .last_sequence = last,
                    .has_more = true,
                    .found = std::move(found)});
  }
  /// `what` is all that it does while nothing is answered: after a time-out, then after a time-out
  /// and 1 s more, 2 s, 4 s.
  void expect_ever_more_slowly(const std::string& what) {
    pass(options.publish_timeout);
    EXPECT_EQ(journal.read(), what);
    for (const int seconds : {1, 2, 4}) {
      pass(options.publish_timeout);
      pass(std::chrono::seconds{seconds} - std::chrono::milliseconds{1});
      EXPECT_EQ(journal.read(), "");
      pass(std::chrono::milliseconds{1});
      EXPECT_EQ(journal.read(), what);
    }
  }

  bool doubts_the_session() const { return core_.session_doubted; }
  /// What is taken of `max_in_flight_bytes`.
  std::int64_t bytes_taken() const { return core_.bytes; }
  /// Other lanes have so many bytes in flight, and each lane may have `share`.
  void let_others_take(std::int64_t bytes, std::int64_t share) {
    core_.bytes = bytes;
    core_.share_of_bytes = share;
  }
  void lose_session() {
    core_.session = 0;
    lane.on_session_lost();
  }
  void open_session() {
    core_.session = 2;
    lane.on_time();
  }

 private:
  void on_incident(const relay::Incident& incident) override {
    incidents.push_back(std::string{to_string(incident.kind)} + ": " + incident.text);
  }
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = 0;
  }
};

}  // namespace stela::test

// Sixteen partitions at the end of a line: how much of it a relay uses, how soon it has made up for
// a cut, and how long partitions wait while the server of others is dead.
#include "bench.hpp"
#include "raw_nats_relay.hpp"
#include "shop.hpp"
#include "support/nats_cluster.hpp"
#include "support/process.hpp"
#include "support/tcp_proxy.hpp"

#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>
#include <stela/outbox/operations.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

namespace stela::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Direction = test::TcpProxy::Direction;

constexpr int partitions = 16;
/// Of each partition: what the relay has by default.
constexpr int line_window = 2'000;

std::string stream_of(int index) {
  return "STELA_" + PartitionId::at(index, partitions).label();
}

std::string prefix_of(int index) {
  return "stela_" + PartitionId::at(index, partitions).label();
}

/// An empty stream in place of the one that is there; on the server with this tag, if there is one.
void make_stream(RawNats& broker, int index, const char* tag = nullptr) {
  const std::string name = stream_of(index);
  const std::string subjects = prefix_of(index) + ".>";
  const char* const subject = subjects.c_str();
  js_DeleteStream(broker.context(), name.c_str(), nullptr, nullptr);
  jsPlacement placement{.Cluster = "stela", .Tags = &tag, .TagsLen = 1};
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = name.c_str();
  const char* all[] = {subject};
  config.Subjects = all;
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  config.Discard = js_DiscardNew;
  config.Duplicates = 120'000'000'000;
  if (tag != nullptr) config.Placement = &placement;
  check_nats(js_AddStream(nullptr, broker.context(), &config, nullptr, nullptr), "making a stream");
}

// --- a backlog over a line

struct Line {
  explicit Line(milliseconds round_trip) {
    proxy.delay(Direction::requests, round_trip / 2);
    proxy.delay(Direction::answers, round_trip - round_trip / 2);
  }
  void make_streams() const {
    RawNats broker{server.url()};
    for (int i = 0; i < partitions; ++i) make_stream(broker, i);
  }
  void cut() {
    proxy.refuse(true);
    proxy.cut();
  }

  test::NatsServer server;
  test::TcpProxy proxy{server.port()};
};

/// A relay that publishes a copy of a database.
class StelaOverLine : public Subject {
 public:
  StelaOverLine(Line& line, const Folder& folder, std::int64_t events)
      : line_{line}, folder_{folder}, events_{events} {}
  ~StelaOverLine() override { stop(); }

  void prepare() override {
    stop();
    const std::string path = folder_.file("relayed.db");
    for (const char* const suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
    std::filesystem::copy_file(folder_.file("shop.db"), path);
    line_.make_streams();
    published_ = 0;
    parts_ = std::make_unique<Parts>(path, line_.proxy.url());
    parts_->relay.on_tick([this](const RelayTick& tick) {
      published_ += tick.published;
      published_.notify_all();
    });
  }
  void run() override {
    start();
    wait_for(events_);
  }

 protected:
  void start() {
    thread_ = std::jthread{[this](const std::stop_token& stop) { parts_->relay.run(stop); }};
  }
  void wait_for(std::int64_t count) const {
    for (std::int64_t now = published_; now < count; now = published_) published_.wait(now);
  }

  Line& line_;

 private:
  struct Parts {
    Parts(const std::string& path, const std::string& url)
        : store{sqlite::open(path, {.durability = sqlite::Durability::relaxed})},
          outbox{store, {.partition_count = partitions}},
          publisher{{.url = url}},
          relay{outbox, publisher, {.window = line_window}} {}

    Store store;
    Outbox outbox;
    nats::Publisher publisher;
    Relay relay;
  };

  void stop() {
    thread_ = {};
    parts_.reset();
  }

  const Folder& folder_;
  const std::int64_t events_;
  std::atomic<std::int64_t> published_{0};
  std::unique_ptr<Parts> parts_;
  std::jthread thread_;
};

/// Publishes what was read beforehand, in the same chains.
class BareOverLine : public Subject {
 public:
  BareOverLine(Line& line, const std::string& path) : line_{line}, store_id_{store_id_of(path)} {
    keep_all(path, kept_);
  }

  void prepare() override {
    nats_.reset();
    line_.make_streams();
    envelopes_.clear();
    for (int i = 0; i < partitions; ++i) {
      envelopes_.emplace_back(store_id_, true, stream_of(i), prefix_of(i));
    }
  }
  void run() override { publish(0, kept_.size()); }

 protected:
  /// On a new connection.
  void publish(std::size_t first, std::size_t last) {
    nats_ = std::make_unique<RawNats>(
        line_.proxy.url(), RawNatsOptions{.window = partitions * line_window, .one_stream = false});
    for (std::size_t i = first; i < last; ++i) {
      const auto index = static_cast<std::size_t>(kept_[i].partition - 1);
      nats_->publish(envelopes_[index].make(kept_[i].event));
    }
    nats_->wait_for(last - first);
  }
  void disconnect() { nats_.reset(); }
  std::size_t half() const noexcept { return kept_.size() / 2; }
  std::size_t all() const noexcept { return kept_.size(); }

  Line& line_;

 private:
  const std::string store_id_;
  std::vector<KeptEvent> kept_;
  std::vector<RawEnvelope> envelopes_;
  std::unique_ptr<RawNats> nats_;
};

void measure_lines(Bench& bench) {
  for (const int round_trip : {0, 5, 20, 100}) {
    const std::string name = "relay.line." + std::to_string(round_trip) + "ms";
    if (!bench.begins(name)) continue;
    const Folder folder{bench.places().disk};
    const std::size_t events = bench.sized<std::size_t>(500, 100'000, 200'000);
    make_shop(folder.file("shop.db"),
              {.streams = events, .events_each = 1, .partitions = partitions, .published = false});
    Line line{milliseconds{round_trip}};
    StelaOverLine stela{line, folder, static_cast<std::int64_t>(events)};
    BareOverLine bare{line, folder.file("shop.db")};
    const std::array<Subject*, 2> subjects{&stela, &bare};
    const auto rounds = take_turns(
        subjects, {.rounds = bench.rounds(7), .operations = 1, .slices = 1, .warm_up = 1});
    bench.add_rate({.name = name,
                    .what = in_digits(static_cast<double>(events)) +
                            " messages of 16 partitions from connecting to the last "
                            "acknowledgement, against publishing alone with the same window",
                    .mode = "relaxed",
                    .place = Place::disk,
                    .unit = "messages/s"},
                   rounds[0], rounds[1], static_cast<double>(events));
  }
}

// --- a cut

class StelaAfterCut final : public StelaOverLine {
 public:
  StelaAfterCut(Line& line, const Folder& folder, std::int64_t events, milliseconds cut)
      : StelaOverLine{line, folder, events}, half_{events / 2}, cut_{cut} {}

  void prepare() override {
    StelaOverLine::prepare();
    start();
    wait_for(half_);
    line_.cut();
    pass_until(steady_clock::now() + cut_);
  }
  void run() override {
    line_.proxy.refuse(false);
    wait_for(2 * half_);
  }

 private:
  const std::int64_t half_;
  const milliseconds cut_;
};

class BareAfterCut final : public BareOverLine {
 public:
  BareAfterCut(Line& line, const std::string& path, milliseconds cut)
      : BareOverLine{line, path}, cut_{cut} {}

  void prepare() override {
    BareOverLine::prepare();
    publish(0, half());
    disconnect();
    line_.cut();
    pass_until(steady_clock::now() + cut_);
  }
  void run() override {
    line_.proxy.refuse(false);
    publish(half(), all());
  }

 private:
  const milliseconds cut_;
};

void measure_cut(Bench& bench) {
  const std::string name = "relay.line.after_cut";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const std::size_t events = bench.sized<std::size_t>(500, 100'000, 100'000);
  make_shop(folder.file("shop.db"),
            {.streams = events, .events_each = 1, .partitions = partitions, .published = false});
  Line line{20ms};
  const milliseconds cut{bench.sized(100, 2'000, 2'000)};
  StelaAfterCut stela{line, folder, static_cast<std::int64_t>(events), cut};
  BareAfterCut bare{line, folder.file("shop.db"), cut};
  const std::array<Subject*, 2> subjects{&stela, &bare};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(7), .operations = 1, .slices = 1, .warm_up = 0});
  bench.report().add({.name = name,
                      .what = "20 ms; cut for 2 s in the middle of " +
                              in_digits(static_cast<double>(events)) +
                              " messages, from the end of the cut to the last acknowledgement, "
                              "against connecting and publishing the rest",
                      .mode = "relaxed",
                      .place = Place::disk,
                      .unit = "ms",
                      .stela = p50s_of(rounds[0]).median / 1e6,
                      .raw = p50s_of(rounds[1]).median / 1e6,
                      .ratio = p50_ratio(rounds[0], rounds[1])});
}

// --- the neighbours of a dead server's partitions

bool is_on_dead_server(PartitionId partition) {
  return partition.number % 4 == 0;
}

/// Notes how long the messages of the other partitions took from their append to their
/// acknowledgement.
class TimingPublisher final : public Publisher, private AnswerSink {
 public:
  explicit TimingPublisher(const nats::PublisherOptions& options) : inner_{options} {}

  /// The longest since it was last asked.
  double longest_ms() {
    const std::lock_guard lock{mutex_};
    return std::exchange(longest_ms_, 0);
  }

  bool can(Fence fence) const noexcept override { return inner_.can(fence); }
  void connect(std::uint64_t session, AnswerSink& sink) override {
    sink_ = &sink;
    inner_.connect(session, *this);
  }
  void disconnect() noexcept override { inner_.disconnect(); }
  void publish(const OutgoingMessage& message) override {
    if (!is_on_dead_server(message.partition)) {
      const std::lock_guard lock{mutex_};
      recorded_[message.request] = message.event.recorded_at;
    }
    inner_.publish(message);
  }
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override {
    inner_.read_back(request, partition, from);
  }
  void probe(std::uint64_t request) override { inner_.probe(request); }
  void flush() override { inner_.flush(); }

 private:
  void take(Answer answer) override {
    if (answer.kind == Answer::Kind::stored) note(answer.request);
    sink_->take(std::move(answer));
  }
  void note(std::uint64_t request) {
    const std::lock_guard lock{mutex_};
    const auto found = recorded_.find(request);
    if (found == recorded_.end()) return;
    const std::chrono::duration<double, std::milli> taken = system_clock().now() - found->second;
    longest_ms_ = std::max(longest_ms_, taken.count());
    recorded_.erase(found);
  }

  nats::Publisher inner_;
  AnswerSink* sink_ = nullptr;
  std::mutex mutex_;
  std::map<std::uint64_t, Timestamp> recorded_;
  double longest_ms_ = 0;
};

/// A cluster of three, a quarter of the streams on one server, and a relay that is connected to
/// another one.
class Neighbours {
 public:
  explicit Neighbours(const std::string& path)
      : store_{sqlite::open(path, {.durability = sqlite::Durability::relaxed})},
        outbox_{store_, {.partition_count = partitions}},
        publisher_{{.url = cluster_.server(0).url()}},
        relay_{outbox_, publisher_} {
    RawNats broker{cluster_.server(0).url()};
    for (int i = 0; i < partitions; ++i) {
      const char* const living = i % 2 == 0 ? "n0" : "n1";
      make_stream(broker, i, is_on_dead_server(PartitionId::at(i, partitions)) ? "n2" : living);
    }
    thread_ = std::jthread{[this](const std::stop_token& stop) { relay_.run(stop); }};
    longest_wait(100ms);
  }

  /// Of an event of a partition whose server lives, among one each two milliseconds; in
  /// milliseconds.
  double longest_wait(milliseconds length) {
    publisher_.longest_ms();
    const auto end = steady_clock::now() + length;
    for (auto due = steady_clock::now(); due < end; due += 2ms) {
      store_.append({.streams = std::array{StreamAppend{basket_id(appended_++ % 500).stream(),
                                                        ExpectedVersion::any(),
                                                        samples_.some(appended_, 1)}}});
      pass_until(due);
    }
    const bool drained = test::eventually([this] { return others_are_drained(); });
    if (!drained) throw std::runtime_error{"partitions stand still for a dead server"};
    return publisher_.longest_ms();
  }
  void kill() { cluster_.server(2).kill(); }
  /// Until everything is published.
  void revive() {
    cluster_.server(2).start_again();
    const auto is_drained = [this] {
      const OutboxStatus status = OutboxOperations{store_}.status();
      return status.pending + status.in_flight + status.retrying == 0;
    };
    if (!test::eventually(is_drained, 120s)) throw std::runtime_error{"it doesn't drain"};
  }

 private:
  bool others_are_drained() {
    const auto all = OutboxOperations{store_}.status().partitions;
    return std::all_of(all.begin(), all.end(), [](const PartitionStatus& each) {
      return is_on_dead_server(each.id) || each.pending + each.in_flight + each.retrying == 0;
    });
  }

  test::NatsCluster cluster_;
  const Samples samples_{Codec::json};
  Store store_;
  Outbox outbox_;
  TimingPublisher publisher_;
  Relay relay_;
  std::size_t appended_ = 0;
  std::jthread thread_;
};

void measure_neighbours(Bench& bench) {
  const std::string name = "relay.neighbours.longest_wait";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  Neighbours neighbours{folder.file("shop.db")};
  // Longer than a publish_timeout: by then all that waits for answers has waited.
  const milliseconds length{bench.sized(50, 8'000, 12'000)};
  std::vector<double> with, without, ratio;
  for (int round = 0; round < bench.rounds(5); ++round) {
    without.push_back(neighbours.longest_wait(length));
    neighbours.kill();
    with.push_back(neighbours.longest_wait(length));
    ratio.push_back(with.back() / without.back());
    neighbours.revive();
  }
  bench.report().add({.name = name,
                      .what = "the longest that one of 500 events a second took to its "
                              "acknowledgement in 12 partitions while the server of 4 others is "
                              "dead, against the same time with all servers",
                      .mode = "relaxed",
                      .place = Place::disk,
                      .unit = "ms",
                      .stela = spread_of(with).median,
                      .raw = spread_of(without).median,
                      .ratio = spread_of(ratio),
                      .goal = at_most(1.5)});
}

}  // namespace

void nats_line_figures(Bench& bench) {
  measure_lines(bench);
  measure_cut(bench);
  measure_neighbours(bench);
}

}  // namespace stela::bench

// From a commit to the server's acknowledgement: how long one event takes, and how many a second
// many threads may append while they are relayed.
#include "appends.hpp"
#include "bench.hpp"
#include "raw_nats_relay.hpp"

#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace stela::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// A number that others wait for.
/// Threads: any number at once.
class Counter {
 public:
  void add(std::uint64_t count = 1) {
    {
      const std::lock_guard lock{mutex_};
      value_ += count;
      if (value_ < wanted_) return;
      wanted_ = nobody;
    }
    reached_.notify_all();
  }
  std::uint64_t value() const {
    const std::lock_guard lock{mutex_};
    return value_;
  }
  void wait_for(std::uint64_t count) {
    if (wait_until(steady_clock::now() + 120s, count)) return;
    throw std::runtime_error{"nothing came for two minutes"};
  }
  /// False if `deadline` comes first.
  bool wait_until(steady_clock::time_point deadline, std::uint64_t count) {
    std::unique_lock lock{mutex_};
    while (value_ < count) {
      wanted_ = std::min(wanted_, count);
      if (reached_.wait_until(lock, deadline) == std::cv_status::timeout) return value_ >= count;
    }
    return true;
  }

 private:
  static constexpr auto nobody = std::numeric_limits<std::uint64_t>::max();

  mutable std::mutex mutex_;
  std::condition_variable reached_;
  std::uint64_t value_ = 0;
  /// The least that somebody waits for: nobody is woken for less.
  std::uint64_t wanted_ = nobody;
};

/// Counts what the server has stored, when its answer arrives.
class CountingPublisher final : public Publisher, private AnswerSink {
 public:
  explicit CountingPublisher(const nats::PublisherOptions& options) : inner_{options} {}

  Counter& stored() noexcept { return stored_; }

  bool can(Fence fence) const noexcept override { return inner_.can(fence); }
  void connect(std::uint64_t session, AnswerSink& sink) override {
    sink_ = &sink;
    inner_.connect(session, *this);
  }
  void disconnect() noexcept override { inner_.disconnect(); }
  void publish(const OutgoingMessage& message) override { inner_.publish(message); }
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override {
    inner_.read_back(request, partition, from);
  }
  void probe(std::uint64_t request) override { inner_.probe(request); }
  void flush() override { inner_.flush(); }

 private:
  void take(Answer answer) override {
    if (answer.kind == Answer::Kind::stored) stored_.add();
    sink_->take(std::move(answer));
  }

  nats::Publisher inner_;
  AnswerSink* sink_ = nullptr;
  Counter stored_;
};

/// An open store of baskets, and a relay that runs on a thread of its own.
struct Relayed {
  Relayed(const std::string& path, const std::string& url)
      : shop{path, sqlite::Durability::full},
        publisher{{.url = url}},
        relay{shop.outbox, publisher},
        thread{[this](std::stop_token stop) { relay.run(stop); }} {}

  Shop shop;
  CountingPublisher publisher;
  Relay relay;
  std::jthread thread;
};

/// Appends one event, and waits until the server has it. The append isn't measured.
template <class Append>
class OneByOne : public Subject {
 public:
  template <class... Arguments>
  explicit OneByOne(Arguments&&... arguments) : append_{std::forward<Arguments>(arguments)...} {}

  void prepare() override {
    // The pace of the load: whoever relays has fallen asleep before the next one.
    pass_until(due_);
    append_.prepare();
    append_.run();
  }
  void run() override {
    stored().wait_for(++appended_);
    due_ = steady_clock::now() + 1ms;
  }

 protected:
  virtual Counter& stored() = 0;

 private:
  Append append_;
  std::uint64_t appended_ = 0;
  steady_clock::time_point due_ = {};
};

class StelaOneByOne final : public OneByOne<SaveBasket> {
 public:
  StelaOneByOne(Relayed& relayed, const Load& load)
      : OneByOne{relayed.shop.store, load}, relayed_{relayed} {}

 private:
  Counter& stored() override { return relayed_.publisher.stored(); }
  Relayed& relayed_;
};

/// A thread that is woken at each commit: reads, publishes, and marks what was stored.
class BareRelay {
 public:
  BareRelay(const std::string& path, const std::string& url)
      : outbox_{path}, nats_{url, {.send_asap = true}}, envelope_{store_id_of(path), true} {}
  ~BareRelay() {
    stopping_ = true;
    commits_.add();
  }

  void wake() { commits_.add(); }
  Counter& stored() noexcept { return stored_; }

 private:
  void run() {
    for (std::uint64_t seen = 0;;) {
      commits_.wait_for(seen + 1);
      if (stopping_) return;
      seen = commits_.value();
      std::int64_t first = 0;
      const int count = outbox_.next(100, [&](const RawEvent& event) {
        if (first == 0) first = event.sequence;
        nats_.publish(envelope_.make(event));
      });
      if (count == 0) continue;
      sent_ += static_cast<std::uint64_t>(count);
      nats_.wait_for(sent_);
      stored_.add(static_cast<std::uint64_t>(count));
      outbox_.mark(first, outbox_.last_read(), count);
    }
  }

  RawOutbox outbox_;
  RawNats nats_;
  RawEnvelope envelope_;
  Counter commits_;
  Counter stored_;
  std::uint64_t sent_ = 0;
  std::atomic<bool> stopping_{false};
  std::jthread thread_{[this] { run(); }};
};

/// A bare append, and the wake-up behind it.
class BareAppend final : public Subject {
 public:
  BareAppend(RawAppender& appender, const Load& load, BareRelay& relay)
      : append_{appender, load}, relay_{relay} {}

  void prepare() override { append_.prepare(); }
  void run() override {
    append_.run();
    relay_.wake();
  }

 private:
  RawAppend append_;
  BareRelay& relay_;
};

class BareOneByOne final : public OneByOne<BareAppend> {
 public:
  BareOneByOne(RawAppender& appender, const Load& load, BareRelay& relay)
      : OneByOne{appender, load, relay}, relay_{relay} {}

 private:
  Counter& stored() override { return relay_.stored(); }
  BareRelay& relay_;
};

void measure_latency(Bench& bench) {
  const std::string name = "delivery.commit_to_acknowledged";
  if (!bench.begins(name)) return;
  constexpr auto full = sqlite::Durability::full;
  const test::NatsServer stela_server;
  const test::NatsServer bare_server;
  const Folder folder{bench.places().disk};
  const std::size_t streams = bench.sized<std::size_t>(50, 1'000, 1'000);
  const auto shop = [&](const char* file) {
    make_shop(folder.file(file), {.durability = full, .streams = streams});
    return folder.file(file);
  };
  const Samples samples{Codec::json};
  const Load load{.samples = samples, .streams = streams};
  const ContextScope scope{sample_context()};
  RawNats{stela_server.url()}.make_stream();
  RawNats{bare_server.url()}.make_stream();
  Relayed relayed{shop("stela.db"), stela_server.url()};
  const std::string bare = shop("bare.db");
  RawAppender appender{bare, {.full_sync = true}, streams};
  BareRelay relay{bare, bare_server.url()};
  StelaOneByOne stela_one{relayed, load};
  BareOneByOne bare_one{appender, load, relay};
  const std::array<Subject*, 2> subjects{&stela_one, &bare_one};
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(9),
                                            .operations = bench.sized(20, 500, 1'000),
                                            .slices = bench.sized(2, 10, 10),
                                            .warm_up = bench.sized(5, 200, 200)});
  const auto add = [&](const char* variant, const char* what, auto value_of, Spread ratio,
                       double goal) {
    bench.report().add({.name = name + variant,
                        .what = std::string{what} +
                                " from the commit of one event to its "
                                "acknowledgement, against bare wake and publish",
                        .mode = "full",
                        .place = Place::disk,
                        .unit = "µs",
                        .stela = value_of(rounds[0]).median / 1000,
                        .raw = value_of(rounds[1]).median / 1000,
                        .ratio = ratio,
                        .goal = at_most(goal)});
  };
  add(".p50", "p50", p50s_of, p50_ratio(rounds[0], rounds[1]), 1.25);
  add(".p99", "p99", p99s_of, p99_ratio(rounds[0], rounds[1]), 1.5);
}

// --- appending and relaying at once

constexpr std::size_t thread_count = 64;
/// More than this doesn't wait: then the threads do.
constexpr std::uint64_t largest_backlog = 5'000;

/// Events a second of all threads together, each saving baskets of its own for so long. They wait
/// while more than `largest_backlog` of what they appended isn't `stored`, until each can go on.
double append_for(Store& store, const Samples& samples, std::size_t streams,
                  std::chrono::milliseconds length, Counter* stored) {
  std::atomic<std::uint64_t> appended{0};
  const std::uint64_t stored_before = stored == nullptr ? 0 : stored->value();
  std::vector<std::unique_ptr<SaveBasket>> saves;
  const std::size_t own = streams / thread_count;
  for (std::size_t i = 0; i < thread_count; ++i) {
    saves.push_back(std::make_unique<SaveBasket>(
        store, Load{.samples = samples, .streams = own, .first_stream = i * own}));
  }
  const double taken = seconds([&] {
    const auto deadline = steady_clock::now() + length;
    std::vector<std::jthread> threads;
    for (const auto& save : saves) {
      SaveBasket* const subject = save.get();
      threads.emplace_back([&, subject] {
        const ContextScope scope{sample_context()};
        while (steady_clock::now() < deadline) {
          if (stored != nullptr && appended > stored->value() - stored_before + largest_backlog) {
            stored->wait_until(deadline, stored_before + appended + thread_count - largest_backlog);
            continue;
          }
          subject->prepare();
          subject->run();
          ++appended;
        }
      });
    }
    threads.clear();
    // What waits still is part of what this rate costs.
    if (stored != nullptr) stored->wait_for(stored_before + appended);
  });
  return static_cast<double>(appended) / taken;
}

void measure_sustained(Bench& bench) {
  const std::string name = "delivery.sustained.64";
  if (!bench.begins(name)) return;
  const test::NatsServer server;
  RawNats broker{server.url()};
  broker.make_stream();
  const Folder folder{bench.places().disk};
  const std::size_t streams = bench.sized<std::size_t>(256, 10'000, 10'000);
  const std::string path = folder.file("shop.db");
  make_shop(path, {.durability = sqlite::Durability::full, .streams = streams});
  const Samples samples{Codec::json};
  const std::chrono::milliseconds length{bench.sized(100, 1'000, 3'000)};
  std::vector<double> appends, relays, both, ratio, server_cores, own_cores;
  const int rounds = bench.rounds(5);
  for (int round = 0; round <= rounds; ++round) {
    double append_rate = 0;
    {
      Shop shop{path, sqlite::Durability::full};
      append_rate = append_for(shop.store, samples, streams, length, nullptr);
    }
    RawDatabase database{path, {}};
    const auto waiting = database.integer("SELECT count(*) FROM outbox_messages");
    Relayed relayed{path, server.url()};
    const double relay_rate =
        static_cast<double>(waiting) /
        seconds([&] { relayed.publisher.stored().wait_for(static_cast<std::uint64_t>(waiting)); });
    const double server_before = cpu_seconds_of(server.id());
    const double own_before = cpu_seconds_of(getpid());
    double rate = 0;
    const double taken = seconds([&] {
      rate = append_for(relayed.shop.store, samples, streams, length, &relayed.publisher.stored());
    });
    // The first round only warms up.
    if (round == 0) continue;
    appends.push_back(append_rate);
    relays.push_back(relay_rate);
    both.push_back(rate);
    ratio.push_back(rate / std::min(append_rate, relay_rate));
    server_cores.push_back((cpu_seconds_of(server.id()) - server_before) / taken);
    own_cores.push_back((cpu_seconds_of(getpid()) - own_before) / taken);
  }
  const double append_rate = spread_of(appends).median;
  const double relay_rate = spread_of(relays).median;
  bench.report().add({.name = name,
                      .what = "64 threads that append while a relay publishes, the backlog not "
                              "growing, against the slower of the two alone",
                      .mode = "full",
                      .place = Place::disk,
                      .stela = spread_of(both).median,
                      .raw = std::min(append_rate, relay_rate),
                      .ratio = spread_of(ratio),
                      .goal = at_least(0.7),
                      .more = {{"append_alone", append_rate},
                               {"relay_alone", relay_rate},
                               {"server_cores", spread_of(server_cores).median},
                               {"own_cores", spread_of(own_cores).median}}});
  bench.report().note(name + ": alone, the threads append " + in_digits(append_rate) +
                      " events/s and the relay publishes " + in_digits(relay_rate) +
                      "; together nats-server uses " + in_digits(spread_of(server_cores).median) +
                      " processors and the benchmark " + in_digits(spread_of(own_cores).median) +
                      " of " + std::to_string(std::thread::hardware_concurrency()));
}

}  // namespace

void nats_delivery_figures(Bench& bench) {
  measure_latency(bench);
  measure_sustained(bench);
}

}  // namespace stela::bench

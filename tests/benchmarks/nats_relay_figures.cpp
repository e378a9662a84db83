// A long backlog to a real nats-server: through the relay, and as one writes it by hand.
#include "bench.hpp"
#include "raw_nats_relay.hpp"
#include "shop.hpp"

#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace stela::bench {
namespace {

/// The client's limit of what is in flight, and how much is fetched, noted and marked at once.
constexpr int window = 2'000;
constexpr int relay_batch = 500;

/// One way of publishing everything in a database: each time from a full outbox into an empty
/// stream.
class Relaying : public Subject {
 public:
  Relaying(const test::NatsServer& server, std::string path)
      : server_{server}, path_{std::move(path)} {}

  void prepare() final {
    tear_down();
    broker_.make_stream();
    refill_outbox(path_);
    set_up();
    server_cpu_ -= cpu_seconds_of(server_.id());
    own_cpu_ -= cpu_seconds_of(getpid());
  }
  void run() final {
    seconds_ += seconds([this] { relay(); });
    server_cpu_ += cpu_seconds_of(server_.id());
    own_cpu_ += cpu_seconds_of(getpid());
    check();
  }

  /// How many processors the server was using, and this process.
  double server_cores() const noexcept { return server_cpu_ / seconds_; }
  double own_cores() const noexcept { return own_cpu_ / seconds_; }
  /// Microseconds of processor time for each message, of this process.
  double own_cpu_us() const noexcept { return 1e6 * own_cpu_ / static_cast<double>(relayed_); }

 protected:
  virtual void set_up() = 0;
  virtual void relay() = 0;
  virtual void tear_down() = 0;
  virtual bool empties_outbox() const { return true; }

  const test::NatsServer& server_;
  const std::string path_;

 private:
  void check() {
    RawDatabase database{path_, {}};
    const auto events = database.integer("SELECT count(*) FROM events");
    const auto waiting = database.integer("SELECT count(*) FROM outbox_messages");
    const auto arrived = static_cast<std::int64_t>(broker_.messages_in_stream());
    relayed_ += arrived;
    if (arrived == events && (waiting == 0 || !empties_outbox())) return;
    throw std::runtime_error{std::to_string(arrived) + " of " + std::to_string(events) +
                             " messages arrived, and " + std::to_string(waiting) + " wait"};
  }

  RawNats broker_{server_.url()};
  double server_cpu_ = 0;
  double own_cpu_ = 0;
  double seconds_ = 0;
  std::int64_t relayed_ = 0;
};

class StelaRelaying final : public Relaying {
 public:
  StelaRelaying(const test::NatsServer& server, std::string path, Fence fence)
      : Relaying{server, std::move(path)}, fence_{fence} {}

 private:
  struct Parts {
    Parts(const std::string& path, const std::string& url, Fence fence)
        : store{sqlite::open(path)},
          outbox{store},
          publisher{{.url = url, .fence = fence}},
          relay{outbox, publisher, {.batch_size = relay_batch, .window = window}} {}

    Store store;
    Outbox outbox;
    nats::Publisher publisher;
    Relay relay;
  };

  void set_up() override { parts_ = std::make_unique<Parts>(path_, server_.url(), fence_); }
  void relay() override { parts_->relay.run_once(); }
  void tear_down() override { parts_.reset(); }

  Fence fence_;
  std::unique_ptr<Parts> parts_;
};

class BareRelaying final : public Relaying {
 public:
  BareRelaying(const test::NatsServer& server, std::string path, bool chained)
      : Relaying{server, std::move(path)}, chained_{chained} {}

 private:
  void set_up() override {
    nats_ = std::make_unique<RawNats>(server_.url(), RawNatsOptions{.window = window});
  }
  void relay() override {
    relay_bare(path_, *nats_,
               {.chained = chained_,
                .batch_size = relay_batch,
                .batches_in_flight = window / relay_batch});
  }
  void tear_down() override { nats_.reset(); }

  bool chained_;
  std::unique_ptr<RawNats> nats_;
};

/// Only publishes what was read beforehand.
class BarePublishing final : public Relaying {
 public:
  using Relaying::Relaying;

 private:
  void set_up() override {
    nats_ = std::make_unique<RawNats>(server_.url(), RawNatsOptions{.window = window});
    if (!kept_.empty()) return;
    RawOutbox outbox{path_};
    while (outbox.next(relay_batch, [this](const RawEvent& event) { kept_.emplace_back(event); }) >
           0)
      continue;
  }
  void relay() override {
    RawEnvelope envelope{store_id_of(path_), false};
    for (const KeptEvent& kept : kept_) nats_->publish(envelope.make(kept.event));
    nats_->wait_for(kept_.size());
  }
  void tear_down() override { nats_.reset(); }
  bool empties_outbox() const override { return false; }

  std::vector<KeptEvent> kept_;
  std::unique_ptr<RawNats> nats_;
};

Figure backlog(std::string name, std::string what, double goal) {
  return {.name = std::move(name),
          .what = std::move(what),
          .mode = "full",
          .place = Place::disk,
          .unit = "messages/s",
          .goal = at_least(goal)};
}

}  // namespace

void nats_relay_figures(Bench& bench) {
  if (!bench.begins("relay.backlog")) return;
  const test::NatsServer server;
  const Folder folder{bench.places().disk};
  const std::size_t events = bench.sized<std::size_t>(1'000, 50'000, 200'000);
  const auto shop = [&](const char* name, Fence fence) {
    std::string path = folder.file(name);
    make_shop(path, {.durability = sqlite::Durability::full,
                     .streams = events,
                     .events_each = 1,
                     .fence = fence});
    return path;
  };
  const std::string open = shop("none.db", Fence::none);
  const std::string fenced = shop("stream.db", Fence::stream);
  const auto copy = [&](const std::string& path, const char* name) {
    std::filesystem::copy_file(path, folder.file(name));
    return folder.file(name);
  };
  StelaRelaying stela_open{server, open, Fence::none};
  StelaRelaying stela_fenced{server, fenced, Fence::stream};
  BareRelaying bare_open{server, copy(open, "bare_none.db"), false};
  BareRelaying bare_fenced{server, copy(fenced, "bare_stream.db"), true};
  BarePublishing alone{server, copy(open, "alone.db")};
  const std::array<Subject*, 5> subjects{&stela_open, &stela_fenced, &bare_open, &bare_fenced,
                                         &alone};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(7), .operations = 1, .slices = 1, .warm_up = 1});

  const std::string count = in_digits(static_cast<double>(events)) + " messages";
  const auto add = [&](Figure figure, const Relaying& stela, const Rounds& ours,
                       const Relaying& other, const Rounds& theirs) {
    figure.more = {{"server_cores", stela.server_cores()},
                   {"own_cores", stela.own_cores()},
                   {"own_cpu_us", stela.own_cpu_us()},
                   {"raw_own_cpu_us", other.own_cpu_us()}};
    bench.add_rate(std::move(figure), ours, theirs, static_cast<double>(events));
  };
  add(backlog("relay.backlog.none", count + ", mode none, against a bare SQLite and nats.c loop",
              0.85),
      stela_open, rounds[0], bare_open, rounds[2]);
  add(backlog("relay.backlog.none.publishing",
              count + ", mode none, against js_PublishMsgAsync alone", 0.80),
      stela_open, rounds[0], alone, rounds[4]);
  add(backlog("relay.backlog.stream", count + ", mode stream, against the same chain by hand",
              0.85),
      stela_fenced, rounds[1], bare_fenced, rounds[3]);
  add(backlog("relay.backlog.stream.fence", count + ", mode stream, against mode none", 0.90),
      stela_fenced, rounds[1], stela_open, rounds[0]);
  bench.report().note("relay.backlog: of the processors, nats-server was using " +
                      in_digits(stela_fenced.server_cores()) + " while Stela relayed (" +
                      in_digits(stela_fenced.own_cores()) + "), and " +
                      in_digits(bare_fenced.server_cores()) + " while the bare loop did (" +
                      in_digits(bare_fenced.own_cores()) + ")");
}

}  // namespace stela::bench

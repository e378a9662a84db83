// The relay against a bare loop over the same tables, and what the outbox costs those who append.
#include "appends.hpp"
#include "bench.hpp"
#include "raw_relay.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>

namespace stela::bench {
namespace {

using sqlite::Durability;

/// What waits for a relay: events of ever other streams, appended many at once.
class Backlog {
 public:
  Backlog(EventStore& store, const Samples& samples, std::size_t streams)
      : store_{store}, samples_{samples} {
    for (std::size_t i = 0; i < streams; ++i) streams_.push_back(basket_id(i).stream());
  }

  void add(std::size_t count) {
    constexpr std::size_t at_once = 500;
    // Shares no factor with the number of streams: each has its turn.
    constexpr std::size_t step = 7919;
    for (std::size_t i = 0; i < count; ++i) {
      next_ = (next_ + step) % streams_.size();
      appends_.push_back({streams_[next_], ExpectedVersion::any(), samples_.some(next_, 1)});
      const bool is_full = appends_.size() == std::min(at_once, streams_.size());
      if (!is_full && i + 1 < count) continue;
      store_.append({.streams = appends_});
      appends_.clear();
    }
  }

 private:
  EventStore& store_;
  const Samples& samples_;
  std::vector<StreamId> streams_;
  std::vector<StreamAppend> appends_;
  std::size_t next_ = 0;
};

/// A database whose backlog is relayed again and again.
struct PassOptions {
  std::string path;
  Durability durability = Durability::full;
  int batch = 500;
  std::size_t messages = 10'000;
  std::size_t streams = 10'000;
};

class Pass : public Subject {
 public:
  Pass(const PassOptions& options, const Samples& samples)
      : shop_{options.path, options.durability},
        log_{options.path, {}},
        backlog_{shop_.store, samples, options.streams},
        messages_{options.messages} {}

  void prepare() final {
    backlog_.add(messages_);
    // So that no pass meets a checkpoint that another one left to it, or forgets in the middle of
    // one what the store knew before somebody else wrote.
    log_.truncate_log();
    shop_.store.transact([](Transaction&) {});
  }
  void run() final {
    const std::int64_t relayed = relay();
    if (relayed == static_cast<std::int64_t>(messages_)) return;
    throw std::runtime_error{"of " + std::to_string(messages_) + " messages " +
                             std::to_string(relayed) + " were relayed"};
  }

 protected:
  virtual std::int64_t relay() = 0;

  Shop shop_;

 private:
  RawDatabase log_;
  Backlog backlog_;
  std::size_t messages_;
};

class StelaPass final : public Pass {
 public:
  StelaPass(const PassOptions& options, const Samples& samples)
      : Pass{options, samples}, relay_{shop_.outbox, publisher_, {.batch_size = options.batch}} {}

 private:
  std::int64_t relay() override { return relay_.run_once().published; }

  MemoryPublisher publisher_;
  Relay relay_;
};

class RawPass final : public Pass {
 public:
  RawPass(const PassOptions& options, const Samples& samples)
      : Pass{options, samples},
        // Under full durability everything that waits is on the disk already.
        relay_{
            options.path, {.full_sync = options.durability == Durability::relaxed}, options.batch} {
  }

 private:
  std::int64_t relay() override { return relay_.drain(); }

  RawRelay relay_;
};

std::size_t streams_of(const Bench& bench) {
  return bench.sized<std::size_t>(100, 10'000, 10'000);
}

Turns turns_of_passes(const Bench& bench) {
  const int passes = bench.sized(1, 5, 8);
  return {.rounds = bench.rounds(15), .operations = passes, .slices = passes, .warm_up = 2};
}

void measure_pass(Bench& bench, int batch, Durability durability) {
  std::string name = "relay.pass." + std::to_string(batch) + '.';
  name += to_string(durability);
  name += ".disk";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const std::size_t messages = bench.sized<std::size_t>(300, 10'000, 20'000);
  const auto shop = [&](const char* file) -> PassOptions {
    make_shop(folder.file(file), {.durability = durability, .streams = streams_of(bench)});
    return {folder.file(file), durability, batch, messages, streams_of(bench)};
  };
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  StelaPass stela{shop("stela.db"), samples};
  RawPass raw{shop("raw.db"), samples};
  const std::array<Subject*, 2> subjects{&stela, &raw};
  const auto rounds = take_turns(subjects, turns_of_passes(bench));
  bench.add_rate({.name = name,
                  .what = "relaying a backlog in batches of " + std::to_string(batch) +
                          " to a broker in memory",
                  .mode = std::string{to_string(durability)},
                  .place = Place::disk,
                  .unit = "messages/s",
                  .goal = at_least(0.85)},
                 rounds[0], rounds[1], static_cast<double>(messages));
}

/// The same when much was published before: by the relay itself, so that its log is there too.
void measure_growth(Bench& bench) {
  const std::string name = "relay.growth.500.full.disk";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const std::size_t history = bench.sized<std::size_t>(1'000, 500'000, 5'000'000);
  const std::size_t messages = bench.sized<std::size_t>(250, 10'000, 20'000);
  const Samples samples{Codec::json};
  const ContextScope scope{sample_context()};
  const auto shop = [&](const char* file) -> PassOptions {
    make_shop(folder.file(file), {.durability = Durability::full, .streams = streams_of(bench)});
    return {folder.file(file), Durability::full, 500, messages, streams_of(bench)};
  };
  StelaPass none{shop("none.db"), samples};
  StelaPass much{shop("much.db"), samples};
  for (std::size_t done = 0; done < history; done += messages) {
    much.prepare();
    much.run();
  }
  const std::array<Subject*, 2> subjects{&much, &none};
  const auto rounds = take_turns(subjects, turns_of_passes(bench));
  bench.add_rate(
      {.name = name,
       .what = "relaying in batches of 500 after " + in_digits(static_cast<double>(history)) +
               " messages were published, against after none",
       .mode = "full",
       .place = Place::disk,
       .unit = "messages/s",
       .goal = at_least(0.95)},
      rounds[0], rounds[1], static_cast<double>(messages));
}

Turns turns_of_appends(const Bench& bench, Durability durability) {
  const bool full = durability == Durability::full;
  const int operations = bench.sized(40, full ? 1500 : 4000, full ? 3000 : 8000);
  return {.rounds = bench.rounds(15),
          .operations = operations,
          .slices = bench.sized(2, 20, 20),
          .warm_up = operations};
}

void measure_pointer(Bench& bench, Durability durability, Place place, double goal) {
  std::string name = "pointer.1.";
  name += to_string(durability);
  name += '.';
  name += to_string(place);
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().at(place)};
  const auto make = [&](const char* file, bool outbox) {
    make_shop(folder.file(file),
              {.durability = durability, .streams = streams_of(bench), .outbox = outbox});
    return folder.file(file);
  };
  const Samples samples{Codec::json};
  const Load load{.samples = samples, .streams = streams_of(bench)};
  const ContextScope scope{sample_context()};
  Shop with{make("with.db", true), durability};
  auto without = sqlite::open(make("without.db", false));
  StoreAppend enqueuing{with.store, load};
  StoreAppend plain{without, load};
  const std::array<Subject*, 2> subjects{&enqueuing, &plain};
  const auto rounds = take_turns(subjects, turns_of_appends(bench, durability));
  bench.add_rate({.name = name,
                  .what = "an append of 1 event with its pointer, against one without an outbox",
                  .mode = std::string{to_string(durability)},
                  .place = place,
                  .goal = at_least(goal)},
                 rounds[0], rounds[1], 1);
}

/// What a producer keeps of its rate while a relay publishes all of it, on a thread beside it.
void measure_producer(Bench& bench) {
  const std::string name = "producer.1.relaxed.disk";
  if (!bench.begins(name)) return;
  constexpr auto relaxed = Durability::relaxed;
  const Folder folder{bench.places().disk};
  const auto make = [&](const char* file) {
    make_shop(folder.file(file), {.durability = relaxed, .streams = streams_of(bench)});
    return folder.file(file);
  };
  const Samples samples{Codec::json};
  const Load load{.samples = samples, .streams = streams_of(bench)};
  const ContextScope scope{sample_context()};
  Shop relayed{make("relayed.db"), relaxed};
  Shop alone{make("alone.db"), relaxed};
  MemoryPublisher publisher;
  Relay relay{relayed.outbox, publisher};
  std::atomic<std::int64_t> published{0};
  relay.on_tick([&](const RelayTick& tick) { published += tick.published; });
  const std::int64_t before = relayed.store.last_sequence().value();

  StoreAppend beside{relayed.store, load};
  StoreAppend undisturbed{alone.store, load};
  const std::array<Subject*, 2> subjects{&beside, &undisturbed};
  std::jthread relaying{[&](std::stop_token stop) { relay.run(stop); }};
  const auto rounds = take_turns(subjects, turns_of_appends(bench, relaxed));
  const std::int64_t appended = relayed.store.last_sequence().value() - before;
  const double share = static_cast<double>(published.load()) / static_cast<double>(appended);
  relaying = {};
  bench.add_rate({.name = name,
                  .what = "appends of 1 event while a relay publishes them, against appends alone",
                  .mode = "relaxed",
                  .place = Place::disk,
                  .goal = at_least(0.80),
                  .more = {{"relayed_meanwhile", share}}},
                 rounds[0], rounds[1], 1);
}

}  // namespace

void outbox_figures(Bench& bench) {
  for (const int batch : {100, 500}) {
    for (const Durability durability : {Durability::full, Durability::relaxed}) {
      measure_pass(bench, batch, durability);
    }
  }
  measure_growth(bench);
  measure_pointer(bench, Durability::full, Place::disk, 0.88);
  measure_pointer(bench, Durability::relaxed, Place::disk, 0.75);
  measure_pointer(bench, Durability::relaxed, Place::tmpfs, 0.75);
  measure_producer(bench);
}

}  // namespace stela::bench

// Appends of one caller: what a user calls, what the store takes, and bare statements.
#include "appends.hpp"
#include "bench.hpp"

#include <array>

namespace stela::bench {
namespace {

struct Case {
  std::string name;
  std::size_t events;
  sqlite::Durability durability;
  Place place;
  Codec codec;
  std::optional<Goal> goal;
};

Turns turns_of(const Bench& bench, const Case& c) {
  // A round is long enough for several checkpoints, as they are part of an append's cost.
  const bool full = c.durability == sqlite::Durability::full;
  const int operations = c.events >= 100 ? bench.sized(10, 300, 600)
                         : full          ? bench.sized(40, 1500, 3000)
                                         : bench.sized(40, 4000, 8000);
  return {.rounds = bench.rounds(full ? 15 : 25),
          .operations = operations,
          .slices = bench.sized(2, 20, 20),
          .warm_up = operations};
}

void measure(Bench& bench, const Case& c) {
  if (!bench.begins(c.name)) return;
  const std::size_t streams = bench.sized<std::size_t>(100, 10'000, 10'000);
  const Folder folder{bench.places().at(c.place)};
  const auto shop = [&](const char* name) {
    make_shop(folder.file(name),
              {.codec = c.codec, .durability = c.durability, .streams = streams});
    return folder.file(name);
  };
  const Samples samples{c.codec};
  const ContextScope scope{sample_context()};
  Shop saved{shop("save.db"), c.durability};
  Shop stored{shop("store.db"), c.durability};
  const bool full = c.durability == sqlite::Durability::full;

  const Load load{.samples = samples, .streams = streams, .events = c.events};
  RawAppender appender{shop("raw.db"), {.full_sync = full}, streams};
  SaveBasket save{saved.store, load};
  StoreAppend store{stored.store, load};
  RawAppend raw{appender, load};
  const std::array<Subject*, 3> subjects{&save, &store, &raw};
  const auto rounds = take_turns(subjects, turns_of(bench, c));

  const std::string count = c.events == 1 ? "1 event" : std::to_string(c.events) + " events";
  const std::string_view codec = c.codec == Codec::json ? "JSON" : "portable binary";
  const auto add = [&](const char* variant, const char* what, const Rounds& ours) {
    bench.add_rate({.name = c.name + variant,
                    .what = count + " a transaction, each with its pointer, " + std::string{codec} +
                            ": " + what,
                    .mode = full ? "full" : "relaxed",
                    .place = c.place,
                    .goal = c.goal},
                   ours, rounds[2], static_cast<double>(c.events));
  };
  add(".save", "Repository::save", rounds[0]);
  add(".store", "EventStore::append of encoded events", rounds[1]);
}

}  // namespace

void append_figures(Bench& bench) {
  using sqlite::Durability;
  const auto one = [&](const char* name, std::size_t events, Durability durability, Place place,
                       double goal) {
    measure(bench, {name, events, durability, place, Codec::json, at_least(goal)});
  };
  one("append.1.full.disk", 1, Durability::full, Place::disk, 0.95);
  one("append.3.full.disk", 3, Durability::full, Place::disk, 0.95);
  one("append.1.relaxed.disk", 1, Durability::relaxed, Place::disk, 0.85);
  one("append.3.relaxed.disk", 3, Durability::relaxed, Place::disk, 0.85);
  one("append.1.relaxed.tmpfs", 1, Durability::relaxed, Place::tmpfs, 0.85);
  one("append.3.relaxed.tmpfs", 3, Durability::relaxed, Place::tmpfs, 0.85);
  for (const Place place : {Place::disk, Place::tmpfs}) {
    std::string where = ".relaxed.";
    where += to_string(place);
    measure(bench, {"append.100.binary" + where, 100, Durability::relaxed, place,
                    Codec::portable_binary, at_least(0.80)});
    measure(bench, {"append.100.json" + where, 100, Durability::relaxed, place, Codec::json,
                    at_least(0.65)});
  }
}

}  // namespace stela::bench

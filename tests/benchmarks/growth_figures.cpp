// What an append costs when much is there already.
#include "appends.hpp"
#include "bench.hpp"

#include <array>

namespace stela::bench {
namespace {

void measure(Bench& bench, Place place) {
  std::string name = "growth.append.1.relaxed.";
  name += to_string(place);
  if (!bench.begins(name)) return;
  constexpr auto relaxed = sqlite::Durability::relaxed;
  const Folder folder{bench.places().at(place)};
  const std::size_t streams = bench.sized<std::size_t>(100, 10'000, 10'000);
  const std::size_t many = bench.sized<std::size_t>(40, 100, 500);
  make_shop(folder.file("few.db"), {.streams = streams, .events_each = 10});
  make_shop(folder.file("many.db"), {.streams = streams, .events_each = many});

  const Samples samples{Codec::json};
  const Load load{.samples = samples, .streams = streams};
  const ContextScope scope{sample_context()};
  Shop few_shop{folder.file("few.db"), relaxed};
  Shop many_shop{folder.file("many.db"), relaxed};
  StoreAppend few{few_shop.store, load};
  StoreAppend grown{many_shop.store, load};
  const std::array<Subject*, 2> subjects{&grown, &few};
  const int operations = bench.sized(40, 4000, 8000);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(15),
                                            .operations = operations,
                                            .slices = bench.sized(2, 20, 20),
                                            .warm_up = operations});
  const auto in_thousands = [&](std::size_t each) {
    return in_digits(static_cast<double>(streams * each) / 1000) + " thousand";
  };
  bench.report().add({.name = name,
                      .what = "p50 of an append of 1 event to " + in_thousands(many) +
                              " events, against one to " + in_thousands(10),
                      .mode = "relaxed",
                      .place = place,
                      .unit = "µs",
                      .stela = p50s_of(rounds[0]).median / 1000,
                      .raw = p50s_of(rounds[1]).median / 1000,
                      .ratio = p50_ratio(rounds[0], rounds[1]),
                      .goal = at_most(1.20),
                      .more = {{"mean_ratio", 1 / speed_ratio(rounds[0], rounds[1]).median}}});
}

}  // namespace

void growth_figures(Bench& bench) {
  measure(bench, Place::disk);
  measure(bench, Place::tmpfs);
}

}  // namespace stela::bench

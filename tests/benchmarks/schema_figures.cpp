// What the tables alone are worth: bare loops on Stela's and on those of the documents it descends
// from.
#include "appends.hpp"
#include "bench.hpp"
#include "seeds_events.hpp"

#include <array>

namespace stela::bench {
namespace {

void measure(Bench& bench, Place place, std::optional<Goal> goal) {
  std::string name = "schema.1.relaxed.";
  name += to_string(place);
  if (!bench.begins(name)) return;
  const std::size_t streams = bench.sized<std::size_t>(100, 10'000, 10'000);
  const Folder folder{bench.places().at(place)};
  make_shop(folder.file("own.db"), {.streams = streams});
  const Samples samples{Codec::json};

  RawAppender appender{folder.file("own.db"), {}, streams};
  RawAppend own{appender, {.samples = samples, .streams = streams}};
  SeedsAppend seeds{folder.file("seeds.db"), {.index = SeedsIndex::full, .streams = streams}, 1};
  SeedsAppend seeds_4000{
      folder.file("seeds-4000.db"),
      {.raw = {.checkpoint_pages = 4000}, .index = SeedsIndex::full, .streams = streams},
      1};
  const std::array<Subject*, 3> subjects{&own, &seeds, &seeds_4000};
  const int operations = bench.sized(40, 4000, 8000);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(25),
                                            .operations = operations,
                                            .slices = bench.sized(2, 20, 20),
                                            .warm_up = operations});
  const auto add = [&](const char* variant, const char* what, const Rounds& theirs,
                       std::optional<Goal> wanted) {
    bench.add_rate({.name = name + variant,
                    .what = std::string{"bare loop on Stela's tables against the seeds' ("} + what +
                            "), 1 event and its pointer",
                    .mode = "relaxed",
                    .place = place,
                    .goal = wanted},
                   rounds[0], theirs, 1);
  };
  add(".as_they_come", "a checkpoint each 1000 pages, as SQLite has it", rounds[1], goal);
  add(".same_checkpoints", "a checkpoint each 4000 pages, as Stela has it", rounds[2], {});
}

}  // namespace

void schema_figures(Bench& bench) {
  measure(bench, Place::disk, at_least(1.40));
  measure(bench, Place::tmpfs, {});
}

}  // namespace stela::bench

// Loading an aggregate: read, decode, apply.
#include "bench.hpp"
#include "decode.hpp"
#include "raw_events.hpp"

#include <array>
#include <stdexcept>

namespace stela::bench {
namespace {

class LoadBasket final : public Subject {
 public:
  LoadBasket(EventStore& store, std::size_t streams) : repository_{store}, streams_{streams} {}

  void prepare() override { id_ = basket_id(dice_.below(streams_)); }
  void run() override { state = repository_.load(id_).state(); }

  BasketState state;

 private:
  Repository<Basket> repository_;
  std::size_t streams_;
  Id<Basket> id_;
  Dice dice_{9};
};

template <class Apply>
class BareLoad final : public Subject {
 public:
  BareLoad(const std::string& path, std::size_t streams, Apply (*apply)(std::int64_t))
      : reader_{path}, streams_{streams}, apply_{apply(reader_.added_kind())} {}

  void prepare() override { name_ = basket_id(dice_.below(streams_)).stream().name(); }
  void run() override {
    reader_.read_stream(name_, [&](auto kind, auto payload) { apply_(kind, payload); });
    state = apply_.take();
  }

  BasketState state;

 private:
  RawReader reader_;
  std::size_t streams_;
  Apply apply_;
  std::string name_;
  Dice dice_{9};
};

struct LoadCase {
  std::string name;
  Codec codec;
  bool interleaved;
  Goal goal;
};

template <class Apply>
void measure(Bench& bench, const LoadCase& c, const std::string& against,
             Apply (*apply)(std::int64_t)) {
  if (!bench.begins(c.name)) return;
  const Folder folder{bench.places().disk};
  const std::size_t streams = bench.sized<std::size_t>(10, 2'000, 2'000);
  const std::string path = folder.file("shop.db");
  make_shop(
      path,
      {.codec = c.codec, .streams = streams, .events_each = 100, .interleaved = c.interleaved});
  auto store = sqlite::open(path);
  LoadBasket load{store, streams};
  BareLoad<Apply> bare{path, streams, apply};
  const std::array<Subject*, 2> subjects{&load, &bare};
  const int operations = bench.sized(10, 1000, 2000);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(25),
                                            .operations = operations,
                                            .slices = bench.sized(2, 20, 20),
                                            .warm_up = operations});
  if (load.state != bare.state) throw std::logic_error{c.name + ": the two loads differ"};
  const char* const layout =
      c.interleaved ? "written in turns with 1,999 others" : "written in one go";
  bench.add_rate(
      {.name = c.name,
       .what = std::string{"load an aggregate of 100 events, "} + layout + ", against " + against,
       .mode = "read",
       .place = Place::disk,
       .goal = c.goal},
      rounds[0], rounds[1], 100);
}

}  // namespace

void load_figures(Bench& bench) {
  for (const bool interleaved : {false, true}) {
    const std::string layout = interleaved ? ".scattered" : ".together";
    measure(bench,
            {"load.100.binary" + layout, Codec::portable_binary, interleaved, at_least(0.75)},
            "a bare read and decoding by hand", apply_by_hand);
    measure(bench, {"load.100.json" + layout, Codec::json, interleaved, at_least(6)},
            "a bare read and cereal's stock JSON archive", apply_with_stock_json);
  }
}

}  // namespace stela::bench

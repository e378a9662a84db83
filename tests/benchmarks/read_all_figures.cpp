// Reading the whole store and decoding every event.
#include "bench.hpp"
#include "decode.hpp"
#include "raw_checked.hpp"
#include "raw_events.hpp"

#include <array>
#include <stdexcept>

namespace stela::bench {
namespace {

class ReadAll final : public Subject {
 public:
  ReadAll(EventStore& store, Codec codec) : store_{store}, codec_{codec} {}

  void run() override {
    state = {};
    EventDecoder<BasketEvents> decoder{codec_};
    for (const StoredEvent& event : store_.read_all()) {
      decoder.decode(event, [&](const auto& decoded) { state.apply(decoded); });
    }
  }

  BasketState state;

 private:
  EventStore& store_;
  Codec codec_;
};

template <class Reader, class Apply>
class BareReadAll final : public Subject {
 public:
  BareReadAll(const std::string& path, Apply (*apply)(std::int64_t))
      : reader_{path}, apply_{apply(reader_.added_kind())} {}

  void run() override {
    reader_.read_all([&](auto kind, auto payload) { apply_(kind, payload); });
    state = apply_.take();
  }

  BasketState state;

 private:
  Reader reader_;
  Apply apply_;
};

template <class Apply>
void measure(Bench& bench, const std::string& name, Codec codec, std::optional<Goal> goal,
             const char* against, Apply (*apply)(std::int64_t)) {
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  const std::size_t streams = bench.sized<std::size_t>(100, 5'000, 10'000);
  make_shop(path, {.codec = codec, .streams = streams, .events_each = 20});
  auto store = sqlite::open(path);
  ReadAll all{store, codec};
  BareReadAll<RawReader, Apply> bare{path, apply};
  BareReadAll<RawCheckedReader, Apply> checked{path, apply};
  const std::array<Subject*, 3> subjects{&all, &bare, &checked};
  const auto rounds = take_turns(
      subjects, {.rounds = bench.rounds(15), .operations = 2, .slices = 2, .warm_up = 1});
  if (all.state != bare.state || all.state != checked.state) {
    throw std::logic_error{name + ": the reads differ"};
  }
  bench.add_rate({.name = name,
                  .what = std::string{"read_all and decode, against "} + against,
                  .mode = "read",
                  .place = Place::disk,
                  .goal = goal},
                 rounds[0], rounds[1], static_cast<double>(streams * 20));
  bench.add_rate({.name = name + ".checked",
                  .what = "the same, the baseline reads all columns and checks the checksum too",
                  .mode = "read",
                  .place = Place::disk},
                 rounds[0], rounds[2], static_cast<double>(streams * 20));
}

}  // namespace

void read_all_figures(Bench& bench) {
  measure(bench, "read_all.json", Codec::json, at_least(6),
          "a bare read and cereal's stock JSON archive", apply_with_stock_json);
  measure(bench, "read_all.binary", Codec::portable_binary, {}, "a bare read and decoding by hand",
          apply_by_hand);
}

}  // namespace stela::bench

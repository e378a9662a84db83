// What personal fields cost: appends against the same ones in clear, rotation, forgetting.
#include "bench.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework.hpp>
#include <stela/privacy.hpp>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace stela::bench {
namespace {

using sqlite::Durability;

template <class Text>
struct Registration {
  static constexpr EventType event_type{"guest.registered", 1, local};
  Text name;
  Text address;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(name), CEREAL_NVP(address));
  }
};
struct Sealed : Registration<Personal<std::string>> {
  static constexpr auto subject = stream_is_subject;
};
using Clear = Registration<std::string>;

/// A store with its keys.
struct Desk {
  Desk(const std::filesystem::path& folder, const std::string& name, Durability durability)
      : keys{open_keys((folder / (name + ".keys")).string())},
        store{sqlite::open((folder / (name + ".db")).string(),
                           {.durability = durability, .keys = &keys})} {}

  template <class E>
  void record(const StreamId& stream) {
    UnitOfWork unit{store};
    E event;
    event.name = std::string{"Margaret Hamilton"};
    event.address = std::string{"Elm Street 1, Springfield"};
    unit.append(stream, ExpectedVersion::any(), event);
    unit.commit();
  }

  Keys keys;
  Store store;
};

StreamId guest(std::int64_t number) {
  return StreamId::of("guest", std::to_string(number));
}

/// One operation appends an event of a subject that has a key.
template <class E>
class Known final : public Subject {
 public:
  Known(const std::filesystem::path& folder, const std::string& name)
      : desk_{folder, name, Durability::relaxed} {}
  void run() override { desk_.record<E>(guest(next_++ % 100)); }

 private:
  Desk desk_;
  std::int64_t next_ = 0;
};

constexpr std::int64_t threads = 8;
constexpr std::int64_t of_a_thread = 50;

/// One operation appends events of new subjects, in several threads.
template <class E>
class New final : public Subject {
 public:
  New(const std::filesystem::path& folder, const std::string& name)
      : desk_{folder, name, Durability::full} {}
  void run() override {
    std::vector<std::jthread> all;
    for (std::int64_t t = 0; t < threads; ++t, next_ += of_a_thread) {
      all.emplace_back([this, first = next_] {
        for (std::int64_t i = 0; i < of_a_thread; ++i) desk_.record<E>(guest(first + i));
      });
    }
  }

 private:
  Desk desk_;
  std::int64_t next_ = 0;
};

template <template <class> class Way>
void compare(Bench& bench, Figure figure, const Turns& turns, double events) {
  const auto folder = bench.places().at(figure.place) / ("stela-bench-" + figure.name);
  std::filesystem::create_directories(folder);
  {
    Way<Sealed> sealed{folder, "sealed"};
    Way<Clear> clear{folder, "clear"};
    Subject* const subjects[] = {&sealed, &clear};
    const auto rounds = take_turns(subjects, turns);
    bench.add_rate(std::move(figure), rounds[0], rounds[1], events);
  }
  std::filesystem::remove_all(folder);
}

void million(Bench& bench) {
  const std::int64_t count = bench.sized<std::int64_t>(200, 100'000, 1'000'000);
  const auto folder = bench.places().at(Place::tmpfs) / "stela-bench-keys-million";
  std::filesystem::create_directories(folder);
  {
    Desk desk{folder, "million", Durability::relaxed};
    for (std::int64_t i = 0; i < count; ++i) {
      desk.keys.key_of({guest(i).name(), ""});
    }
    for (std::int64_t i = 0; i < 10; ++i) desk.record<Sealed>(guest(i));
    const double forgetting = seconds([&] {
      for (std::int64_t i = 0; i < 10; ++i) forget(desk.store, guest(i), {.by = "", .reason = ""});
    });
    const double rotation = seconds([&] { desk.keys.rotate(); });
    bench.report().add({.name = "keys.million.forget",
                        .what = "forget one of a million",
                        .mode = "relaxed",
                        .place = Place::tmpfs,
                        .unit = "ms",
                        .stela = forgetting / 10 * 1000,
                        .goal = limit(50)});
    bench.report().add({.name = "keys.million.rotate",
                        .what = "rotate a million keys",
                        .mode = "full",
                        .place = Place::tmpfs,
                        .unit = "s",
                        .stela = rotation,
                        .goal = limit(10)});
  }
  std::filesystem::remove_all(folder);
}

}  // namespace

void keys_figures(Bench& bench) {
  if (bench.begins("keys.append.known")) {
    compare<Known>(bench,
                   {.name = "keys.append.known",
                    .what = "append two personal fields of a known subject",
                    .mode = "relaxed",
                    .place = Place::disk,
                    .goal = at_least(0.85)},
                   {.rounds = bench.rounds(5), .operations = bench.sized(50, 1'000, 5'000)}, 1);
  }
  if (bench.begins("keys.append.new")) {
    compare<New>(bench,
                 {.name = "keys.append.new",
                  .what = "append two personal fields of a new subject, 8 threads",
                  .mode = "full",
                  .place = Place::disk,
                  .goal = at_least(0.5)},
                 {.rounds = bench.rounds(5),
                  .operations = bench.sized(1, 10, 20),
                  .slices = 1,
                  .warm_up = 1},
                 static_cast<double>(threads * of_a_thread));
  }
  if (bench.begins("keys.million")) million(bench);
}

}  // namespace stela::bench

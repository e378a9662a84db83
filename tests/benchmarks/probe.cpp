#include "probe.hpp"

#include "bench.hpp"
#include "seeds_events.hpp"
#include "shop.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace stela::bench {
namespace {

class File {
 public:
  explicit File(const std::string& path) : file_{::open(path.c_str(), O_RDWR | O_CREAT, 0644)} {
    if (file_ < 0) throw std::runtime_error{path + ": " + std::strerror(errno)};
  }
  ~File() { close(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const std::vector<char>& bytes, std::size_t at) {
    if (pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error{std::string{"writing: "} + std::strerror(errno)};
    }
  }
  void sync() { fdatasync(file_); }

 private:
  int file_;
};

/// What a bare loop was measured at once, on a quiet machine that is known.
struct Reference {
  const char* name;
  const char* what;
  Place place;
  bool full_sync;
  std::size_t events;
  double events_per_second;
};

// docs/performance.md says where these come from.
constexpr double reference_sync_us = 91.0;
constexpr double reference_scan_per_second = 5'133'160;
constexpr Reference references[] = {
    {"yardstick.1.full.disk", "1 event", Place::disk, true, 1, 6'979},
    {"yardstick.3.full.disk", "3 events", Place::disk, true, 3, 18'224},
    {"yardstick.1.relaxed.disk", "1 event", Place::disk, false, 1, 23'470},
    {"yardstick.100.relaxed.disk", "100 events", Place::disk, false, 100, 188'643},
    {"yardstick.1.relaxed.tmpfs", "1 event", Place::tmpfs, false, 1, 42'152},
    {"yardstick.100.relaxed.tmpfs", "100 events", Place::tmpfs, false, 100, 266'955},
};

class Scan final : public Subject {
 public:
  explicit Scan(RawDatabase& database)
      : query_{database, "SELECT sequence, event_type, payload FROM events ORDER BY sequence"} {}

  void run() override {
    while (query_.step()) {
      bytes_ += query_.bytes(1).size() + query_.bytes(2).size() +
                static_cast<std::size_t>(query_.integer(0));
    }
    query_.reset();
  }

 private:
  RawStatement query_;
  std::size_t bytes_ = 0;
};

/// Rows a second of a scan in memory: what the processor gives to SQLite.
double scan_rate(Bench& bench) {
  const Folder folder{bench.places().tmpfs};
  const std::size_t rows = bench.sized<std::size_t>(1'000, 100'000, 500'000);
  SeedsAppender appender{folder.file("scan.db"), {}};
  Dice dice{5};
  for (std::size_t i = 0; i < rows; i += 100) appender.append(dice.below(10'000), 100);
  Scan scan{appender.database()};
  Subject* const subjects[] = {&scan};
  const auto rounds =
      take_turns(subjects, {.rounds = bench.rounds(9), .operations = 1, .slices = 1, .warm_up = 1});
  return 1e9 * static_cast<double>(rows) / means_of(rounds[0]).median;
}

/// The loop's rate against the reference machine's, not scaled yet.
Figure measure(Bench& bench, const Reference& reference) {
  const Folder folder{bench.places().at(reference.place)};
  SeedsAppend subject{folder.file("seeds.db"),
                      {.raw = {.full_sync = reference.full_sync, .checkpoint_pages = 1000}},
                      reference.events};
  Subject* const subjects[] = {&subject};
  const int events = bench.sized(200, 10'000, reference.events > 1 ? 100'000 : 20'000);
  const int operations = std::max(events / static_cast<int>(reference.events), 2);
  const auto rounds = take_turns(subjects, {.rounds = bench.rounds(9),
                                            .operations = operations,
                                            .slices = 1,
                                            .warm_up = operations / 2});
  std::vector<double> rates;
  std::vector<double> ratios;
  for (const Round& round : rounds[0]) {
    rates.push_back(1e9 * static_cast<double>(reference.events) / round.mean);
    ratios.push_back(rates.back() / reference.events_per_second);
  }
  return {.name = reference.name,
          .what = std::string{"bare loop, "} + reference.what +
                  " a transaction, against what it gave on the reference machine, scaled",
          .mode = reference.full_sync ? "full" : "relaxed",
          .place = reference.place,
          .stela = spread_of(rates).median,
          .raw = reference.events_per_second,
          .ratio = spread_of(ratios),
          .goal = at_least(0.9)};
}

}  // namespace

double sync_p50_us(const std::filesystem::path& folder, std::size_t frames, int times) {
  const Folder own{folder};
  File file{own.file("probe")};
  const std::vector<char> bytes(frames * 4120, 'x');
  constexpr std::size_t length = 4 * 1024 * 1024;
  for (std::size_t at = 0; at < length; at += bytes.size()) file.write(bytes, at);
  file.sync();
  std::vector<double> taken;
  for (int i = 0; i < times; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * bytes.size() % (length - bytes.size());
    taken.push_back(1e6 * seconds([&] {
                      file.write(bytes, at);
                      file.sync();
                    }));
  }
  return spread_of(std::move(taken)).median;
}

void yardstick_figures(Bench& bench) {
  if (!bench.begins("yardstick")) return;
  const double scan = scan_rate(bench);
  const int times = bench.sized(20, 500, 2000);
  bool is_short = false;
  for (const Reference& reference : references) {
    if (!bench.begins(reference.name)) continue;
    const double before = sync_p50_us(bench.places().disk, 3, times);
    Figure figure = measure(bench, reference);
    const double sync = (before + sync_p50_us(bench.places().disk, 3, times)) / 2;
    const double scale =
        reference.full_sync ? reference_sync_us / sync : scan / reference_scan_per_second;
    figure.raw *= scale;
    for (double* const ratio : {&figure.ratio.median, &figure.ratio.min, &figure.ratio.max}) {
      *ratio /= scale;
    }
    figure.more = {{"sync_p50_us", sync}, {"scan_per_second", scan}, {"scale", scale}};
    is_short = is_short || !figure.reaches_goal();
    bench.report().add(std::move(figure));
  }
  bench.report().note("Probes: write and fdatasync of 3 WAL frames " +
                      in_digits(sync_p50_us(bench.places().disk, 3, times)) +
                      " µs (reference 91.00), scan " + in_digits(scan) +
                      " rows/s (reference 5,133,160).");
  if (is_short) {
    bench.report().note(
        "The yardstick is short: a bare loop stays behind 0.9 of what it gave on the reference "
        "machine, scaled by the probes. Something else is using this machine; run it again.");
  }
}

}  // namespace stela::bench

// The `stela` program, timed from outside.
#include "bench.hpp"
#include "program.hpp"
#include "raw.hpp"
#include "shop.hpp"
#include "support/nats_server.hpp"
#include "support/process.hpp"

#include <stela/outbox.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>

namespace stela::bench {
namespace {

const std::string stela_program = STELA_PROGRAM;

/// Both in turns, in milliseconds.
void add_durations(Bench& bench, Figure figure, const Words& ours, const Words& raw, int rounds) {
  std::vector<double> our_times, raw_times, ratios;
  for (int round = 0; round < rounds; ++round) {
    our_times.push_back(1e3 * seconds_of(ours));
    raw_times.push_back(1e3 * seconds_of(raw));
    ratios.push_back(our_times.back() / raw_times.back());
  }
  figure.unit = "ms";
  figure.stela = spread_of(our_times).median;
  figure.raw = spread_of(raw_times).median;
  figure.ratio = spread_of(ratios);
  figure.more = {{"stela_max_ms", spread_of(our_times).max}};
  bench.report().add(std::move(figure));
}

void measure_start(Bench& bench) {
  if (!bench.begins("tool.start")) return;
  add_durations(bench,
                {.name = "tool.start",
                 .what = "`stela version`, from start to end, against a program that does nothing",
                 .mode = "read",
                 .goal = limit(10)},
                {stela_program, "version"}, {"/bin/true"}, bench.sized(3, 50, 200));
}

// --- a large outbox

struct Counts {
  std::int64_t published;
  std::int64_t pending;
};

/// An outbox with that much in it, as appends and a relay would have left it.
void make_outbox(const std::string& path, const Counts& counts) {
  {
    auto store = sqlite::open(path, {.durability = sqlite::Durability::relaxed});
    const Outbox outbox{store};
    const Samples samples{Codec::json};
    const StreamId stream = basket_id(1).stream();
    const StreamAppend append{stream, ExpectedVersion::none(), samples.some(0, 1)};
    store.append({.streams = {&append, 1}});
  }
  const std::string published = std::to_string(counts.published);
  const std::string all = std::to_string(counts.published + counts.pending);
  RawDatabase raw{path, {}};
  const auto numbers = [](const std::string& from, const std::string& to) {
    return "WITH RECURSIVE n(i) AS (SELECT " + from + " UNION ALL SELECT i + 1 FROM n WHERE i < " +
           to + ") ";
  };
  raw.execute("BEGIN");
  raw.execute("DELETE FROM outbox_messages");
  raw.execute("INSERT INTO events " + numbers("2", all) +
              "SELECT i, 1 + i % 1000, 1 + i / 1000, 1, 1767225600000000 + i, "
              "randomblob(16), NULL, NULL, 0, NULL, 0, x'7b7d' FROM n");
  raw.execute("INSERT INTO outbox_messages (partition, sequence, stream) " +
              numbers(std::to_string(counts.published + 1), all) +
              "SELECT 0, i, 1 + i % 1000 FROM n");
  raw.execute("INSERT INTO outbox_batches " + numbers("1", std::to_string(counts.published / 100)) +
              "SELECT 0, i * 100, 0, i * 100 - 99, 100, 1767225600000000 + i, i * 100 - 99, "
              "i * 100 FROM n");
  raw.execute("UPDATE outbox_partitions SET published_through = " + published +
              ", broker_sequence = " + published + ", removed = " + published +
              ", published = " + published);
  raw.execute("COMMIT");
  raw.truncate_log();
}

void require(const std::string& file, const std::string& text) {
  std::ifstream stream{file};
  const std::string content{std::istreambuf_iterator<char>{stream}, {}};
  if (content.find(text) == std::string::npos) {
    throw std::runtime_error{"there is no " + text + " in " + content.substr(0, 500)};
  }
}

void measure_status(Bench& bench) {
  if (!bench.begins("tool.outbox_status")) return;
  const auto counts = bench.sized<Counts>({1'000, 200}, {250'000, 50'000}, {5'000'000, 1'000'000});
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  make_outbox(path, counts);
  const Words status{stela_program, "outbox", "status", "--db", path, "--json"};
  const std::string seen = folder.file("seen");
  seconds_of(status, "/dev/null", seen);
  require(seen,
          "\"pending\":" + std::to_string(std::min(counts.pending, most_counted_pending)) + ",");
  require(seen, "\"published\":" + std::to_string(counts.published) + ",");
  add_durations(
      bench,
      {.name = "tool.outbox_status",
       .what = "`stela outbox status`, " + in_digits(static_cast<double>(counts.published)) +
               " published and " + in_digits(static_cast<double>(counts.pending)) +
               " pending, against `stela version`",
       .mode = "read",
       .goal = limit(100)},
      status, {stela_program, "version"}, bench.sized(2, 20, 50));
}

// --- appending

/// Lines for `events append --stdin`; the same events for the library.
struct Orders {
  static constexpr int streams = 1'000;

  static StreamId stream(int i) {
    return basket_id(static_cast<std::size_t>(i % streams)).stream();
  }
  static std::string line(const Samples& samples, int i) {
    const NewEvent& event = samples.encoded(static_cast<std::size_t>(i) % samples.size());
    std::string text = R"({"stream":")" + stream(i).name() + R"(","type":")";
    text.append(event.type).append(R"(","publish":true,"data":)");
    return text.append(event.payload).append("}\n");
  }
};

double append_by_library(const std::string& path, sqlite::Durability durability,
                         const Samples& samples, int count) {
  auto store = sqlite::open(path, {.durability = durability});
  Outbox outbox{store};
  std::vector<StreamId> streams;
  for (int i = 0; i < Orders::streams; ++i) streams.push_back(Orders::stream(i));
  return seconds([&] {
    for (int i = 0; i < count; ++i) {
      const StreamAppend append{streams[static_cast<std::size_t>(i % Orders::streams)],
                                ExpectedVersion::any(),
                                samples.some(static_cast<std::size_t>(i) % samples.size(), 1)};
      store.append({.streams = {&append, 1}});
    }
  });
}

void measure_append(Bench& bench, sqlite::Durability durability, Place place) {
  const bool full = durability == sqlite::Durability::full;
  std::string name = std::string{"tool.append."} + (full ? "full." : "relaxed.");
  name += to_string(place);
  if (!bench.begins(name)) return;
  const Samples samples{Codec::json};
  const int count = full ? bench.sized(50, 4'000, 8'000) : bench.sized(200, 20'000, 50'000);
  const Folder folder{bench.places().at(place)};
  const std::string lines = folder.file("lines.jsonl");
  {
    std::ofstream file{lines};
    for (int i = 0; i < count; ++i) file << Orders::line(samples, i);
  }
  std::vector<double> ours, library, ratios;
  for (int round = 0; round < bench.rounds(9); ++round) {
    // Both into databases that are new.
    const Folder fresh{bench.places().at(place)};
    const std::string path = fresh.file("tool.db");
    append_by_library(path, durability, samples, 0);
    const double library_seconds =
        append_by_library(fresh.file("library.db"), durability, samples, count);
    const double our_seconds = seconds_of(
        {stela_program, "events", "append", "--db", path, "--stdin"}, lines, fresh.file("out"));
    ours.push_back(count / our_seconds);
    library.push_back(count / library_seconds);
    ratios.push_back(library_seconds / our_seconds);
  }
  bench.report().add({.name = name,
                      .what = "`stela events append --stdin`, a transaction a line, against the "
                              "library's appends of the same",
                      .mode = full ? "full" : "relaxed",
                      .place = place,
                      .stela = spread_of(ours).median,
                      .raw = spread_of(library).median,
                      .ratio = spread_of(ratios),
                      .goal = at_least(0.8)});
}

// --- the dashboard

/// Returns once a worker has all partitions.
void await_owner(const std::string& path) {
  auto store = sqlite::open(path);
  OutboxOperations outbox{store};
  const auto is_owned = [](const PartitionStatus& partition) { return !partition.owner.empty(); };
  if (!test::eventually(
          [&] { return std::ranges::all_of(outbox.status().partitions, is_owned); })) {
    throw std::runtime_error{"the worker takes no partitions"};
  }
}

/// Percent of a core that a worker without work uses.
double idle_load(const Words& words, const std::string& path, bool in_terminal,
                 std::chrono::milliseconds length) {
  const RunningProgram worker{words, in_terminal};
  await_owner(path);
  if (in_terminal && !test::eventually([&] { return worker.bytes_shown() >= 1'000; })) {
    throw std::runtime_error{"the dashboard wasn't shown"};
  }
  const double before = worker.processor_seconds();
  const double taken = seconds([&] { pass_until(std::chrono::steady_clock::now() + length); });
  return 100 * (worker.processor_seconds() - before) / taken;
}

void measure_dashboard(Bench& bench) {
  if (!bench.begins("tool.dashboard")) return;
  const test::NatsServer nats;
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  {
    auto store = sqlite::open(path);
    const Outbox outbox{store, {.partition_count = 16}};
  }
  const Words shown{stela_program, "outbox",          "work",     "--db", path, "--nats",
                    nats.url(),    "--ensure-stream", "--stream", "SHOP"};
  Words silent = shown;
  silent.emplace_back("--silent");
  const std::chrono::milliseconds length{bench.sized(500, 5'000, 15'000)};
  std::vector<double> with, without;
  for (int round = 0; round < bench.sized(1, 2, 3); ++round) {
    with.push_back(idle_load(shown, path, true, length));
    without.push_back(idle_load(silent, path, false, length));
  }
  const double load = spread_of(with).median;
  const double idle = spread_of(without).median;
  bench.report().add({.name = "tool.dashboard",
                      .what = "an idle worker of 16 partitions with its dashboard, against one "
                              "that prints nothing: percent of a core",
                      .mode = "full",
                      .unit = "%",
                      .stela = load,
                      .raw = idle,
                      .ratio = {load / idle, load / idle, load / idle},
                      .goal = limit(2)});
}

}  // namespace

void tool_figures(Bench& bench) {
  measure_start(bench);
  measure_status(bench);
  measure_append(bench, sqlite::Durability::full, Place::disk);
  measure_append(bench, sqlite::Durability::relaxed, Place::disk);
  measure_append(bench, sqlite::Durability::relaxed, Place::tmpfs);
  measure_dashboard(bench);
}

}  // namespace stela::bench

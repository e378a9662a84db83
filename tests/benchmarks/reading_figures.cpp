// Every command of the tool that only reads, timed from outside on a store of a million events.
#include "bench.hpp"
#include "million.hpp"
#include "program.hpp"
#ifdef STELA_BENCH_POSTGRES
#include "postgres_shop.hpp"
#endif

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace stela::bench {
namespace {

/// With filters that find much, little and nothing.
constexpr const char* commands[] = {
    "check",
    "check --format nagios",
    "why",
    "why 7",
    "why 999999",
    "why order-0",
    "why p03",
    "why worker-1",
    "why revenue",
    "why payment_deadline",
    "why billing",
    "why 01890a5d-ac96-774b-bcce-b302099a8057",
    "doctor",
    "log",
    "log --limit 1000",
    "changes",
    "changes --limit 1000",
    "findings known",
    "outbox status",
    "outbox check",
    "outbox check --format prometheus",
    "outbox history",
    "outbox history --since 7d --by 1h",
    "outbox history --since 24h --partition p03",
    "outbox list",
    "outbox list --state pending --newest-first",
    "outbox list --state in_flight",
    "outbox list --state retrying",
    "outbox list --state parked",
    "outbox list --state discarded",
    "outbox list --state published",
    "outbox list --state published --newest-first",
    "outbox list --state published --since 1h",
    "outbox list --state published --type order.none",
    "outbox list --state published --error nothing",
    "outbox list --state published --partition p03",
    "outbox list --state parked --type order.shipped",
    "outbox list --state parked --error nothing",
    "outbox list --state parked --since 1m",
    "outbox list --state pending --type order.placed",
    "outbox list --partition p03",
    "outbox list --stream order-0",
    "outbox list --type order.none",
    "outbox list --error nothing",
    "outbox list --since 1h",
    "outbox list --until 30d",
    "outbox list --newest-first --limit 1000",
    "outbox groups",
    "outbox show 7",
    "outbox show 500001",
    "outbox show 999999",
    "outbox workers",
    "outbox partitions list",
    "events list",
    "events list --newest-first --limit 1000",
    "events list --since 1h",
    "events list --until 30d",
    "events list --stream order-0",
    "events list --category invoice --newest-first",
    "events list --category none",
    "events list --type order.placed --newest-first",
    "events list --type order.none",
    "events list --type invoice.paid",
    "events list --correlation request-4711",
    "events list --correlation request-none",
    "events list --causation 01890a5d-ac96-774b-bcce-b302099a8057",
    "events show 500001",
    "events show 01890a5d-ac96-774b-bcce-b302099a8057",
    "events query --type order.placed --limit 100",
    "events query --type order.none",
    "events query --tag buyer-17",
    "events query --tag buyer-none",
    "events query --type order.placed --tag buyer-17 --or --tag buyer-18",
    "events query --type order.placed --newest-first --limit 100",
    "events head",
    "events stats",
    "events tree 1",
    "streams list --limit 1000",
    "streams list --category none",
    "streams show order-0",
    "streams show order-0 --type order.none",
    "snapshots list",
    "snapshots list --category none",
    "tags list",
    "tags list --category none",
    "tags show buyer-17",
    "tags show buyer-17 --type order.none",
    "tags types",
    "projections status",
    "projections check",
    "projections list",
    "projections list letters --newest-first",
    "projections list letters --type order.none",
    "projections list letters --until 30d",
    "processes list",
    "processes show payment_deadline",
    "timers list",
    "timers list --due",
    "timers list --overdue",
    "timers list --parked",
    "timers list --process payment_deadline",
    "timers list --kind none",
    "timers list --key order-7",
    "timers list --since 1h",
    "timers list --until 30d",
    "timers list --limit 1000",
    "timers show payment_deadline order-8 not_paid",
    "timers check",
    "timers log",
    "inbox status",
    "inbox check",
    "inbox list",
    "inbox list --consumer billing --newest-first",
    "inbox list --type order.none",
    "inbox list --until 30d",
    "inbox gaps",
    "inbox gaps --until 30d",
    "config show",
    "completion --values partitions"};

Words words_of(const std::string& command, const std::string& place) {
  std::istringstream stream{command};
  Words words{STELA_PROGRAM};
  std::copy(std::istream_iterator<std::string>{stream}, {}, std::back_inserter(words));
  words.insert(words.end(), {"--db", place});
  return words;
}

/// What of a server's processes have used that have ended; 0 of no server.
double server_seconds(pid_t server) {
  if (server <= 0) return 0;
  std::ifstream file{"/proc/" + std::to_string(server) + "/stat"};
  std::string field;
  // The name may have spaces; the fields behind it have none.
  std::getline(file, field, ')');
  double ticks = 0;
  for (int i = 3; i <= 17 && file >> field; ++i) ticks += i >= 16 ? std::stod(field) : 0;
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Where a store is, and its server, if it has one.
struct Shop {
  std::string engine;
  std::string place;
  pid_t server = -1;
};

struct Reading {
  std::vector<double> ms, processor_ms;
  /// Of the server, for each round.
  double server_ms = 0;
  double mib = 0;
};

Reading read_by(const Words& words, int rounds, pid_t server = -1) {
  Reading reading;
  const double before = server_seconds(server);
  for (int round = 0; round < rounds; ++round) {
    const Use use = use_of(words);
    constexpr int unknown = 3;
    if (use.exit_code > unknown) throw std::runtime_error{words[1] + ' ' + words[2] + " failed"};
    reading.ms.push_back(1e3 * use.seconds);
    reading.processor_ms.push_back(1e3 * use.processor_seconds);
    reading.mib = std::max(reading.mib, use.mib);
  }
  reading.server_ms = 1e3 * (server_seconds(server) - before) / rounds;
  return reading;
}

/// By the slower one of its two forms. On an idle machine it takes hardly longer than what it and
/// its server need of a processor, as they wait for each other.
void measure_command(Bench& bench, const Shop& shop, const std::string& command) {
  std::string name = "million." + shop.engine + '.' + command;
  std::replace(name.begin(), name.end(), ' ', '_');
  if (!bench.begins(name)) return;
  Words words = words_of(command, shop.place);
  const int rounds = bench.rounds(5);
  Reading slower = read_by(words, rounds, shop.server);
  if (command.find("--format") == std::string::npos) {
    words.emplace_back("--json");
    Reading json = read_by(words, rounds, shop.server);
    json.mib = slower.mib = std::max(slower.mib, json.mib);
    if (spread_of(json.ms).median > spread_of(slower.ms).median) slower = std::move(json);
  }
  const Reading start = read_by({STELA_PROGRAM, "version", "--json"}, rounds);
  const double ours = spread_of(slower.ms).median;
  const double raw = spread_of(start.ms).median;
  const double processor = spread_of(slower.processor_ms).median + slower.server_ms;
  bench.report().add(
      {.name = name,
       .what = in_digits(slower.mib) + " MiB, " + in_digits(processor) + " ms of a processor",
       .mode = "read",
       .unit = "ms",
       .stela = ours,
       .raw = raw,
       .ratio = {ours / raw, ours / raw, ours / raw},
       .goal = limit(100),
       .more = {{"peak_mib", slower.mib}, {"processor_ms", processor}}});
}

/// In a process of its own, so that this one stays small: the system counts its memory as the peak
/// of a program that it starts.
template <class Work>
void apart(Work work) {
  const pid_t id = fork();
  if (id < 0) throw std::runtime_error{"fork failed"};
  if (id == 0) {
    try {
      work();
      _exit(0);
    } catch (const std::exception& e) {
      std::cerr << e.what() << '\n';
      _exit(1);
    }
  }
  int status = 0;
  waitpid(id, &status, 0);
  if (status != 0) throw std::runtime_error{"the store of a million events can't be made"};
}

void measure_all(Bench& bench, const Shop& shop) {
  const std::size_t step = bench.sized<std::size_t>(16, 1, 1);
  for (std::size_t i = 0; i < std::size(commands); i += step) {
    measure_command(bench, shop, commands[i]);
  }
}

}  // namespace

void reading_figures(Bench& bench) {
  const std::int64_t events = bench.sized(1'000, 1'000'000, 1'000'000);
  if (bench.begins("million.sqlite")) {
    const Folder folder{bench.places().disk};
    const std::string path = folder.file("shop.db");
    apart([&] { make_million(path, events); });
    measure_all(bench, {"sqlite", path});
  }
#ifdef STELA_BENCH_POSTGRES
  if (bench.begins("million.postgres")) {
    const test::PostgresServer server{postgres_server_options};
    apart([&] { make_million_on_postgres(server.url(), events); });
    measure_all(bench, {"postgres", server.url(), server.id()});
  }
#endif
}

}  // namespace stela::bench

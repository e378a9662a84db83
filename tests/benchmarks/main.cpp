// Measures Stela against bare loops in the same run.
//
// stela_benchmarks [--quick] [--figure PATTERN]… [--speed] [--rounds N] [--disk DIR] [--json FILE]
#include "bench.hpp"

#include <charconv>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using stela::bench::Bench;
using stela::bench::Settings;

constexpr const char* usage =
    "usage: stela_benchmarks [options]\n"
    "  --quick           fewer rounds, less data\n"
    "  --tiny            only shows that everything runs\n"
    "  --figure PATTERN  only figures whose name contains it, or another one that is given\n"
    "  --speed           only those that say how fast PostgreSQL is\n"
    "  --rounds N        rounds that each median is taken of\n"
    "  --disk DIR        a folder on the disk for databases (default: here)\n"
    "  --json FILE       where the JSON lines go (default: benchmarks.jsonl)\n";

struct Group {
  const char* name;
  void (*run)(Bench&);
};

constexpr Group groups[] = {
    {"yardstick", stela::bench::yardstick_figures},
    {"append", stela::bench::append_figures},
    {"schema", stela::bench::schema_figures},
    {"group commit", stela::bench::group_commit_figures},
    {"load", stela::bench::load_figures},
    {"read all", stela::bench::read_all_figures},
    {"growth", stela::bench::growth_figures},
    {"memory", stela::bench::memory_figures},
    {"outbox", stela::bench::outbox_figures},
    {"wake", stela::bench::wake_figures},
    {"tenants", stela::bench::tenant_figures},
    {"projections", stela::bench::projection_figures},
    {"growth of a replay", stela::bench::replay_growth_figures},
    {"decisions", stela::bench::decision_figures},
    {"timers", stela::bench::timer_figures},
    {"keys of personal data", stela::bench::keys_figures},
#ifdef STELA_PROGRAM
    {"tool", stela::bench::tool_figures},
    {"reading a million events", stela::bench::reading_figures},
#endif
#ifdef STELA_BENCH_POSTGRES
    {"PostgreSQL", stela::bench::postgres_figures},
    {"projections on PostgreSQL", stela::bench::postgres_projection_figures},
    {"speed on PostgreSQL", stela::bench::postgres_speed_figures},
#endif
#if defined STELA_BENCH_POSTGRES && defined STELA_BENCH_NATS
    {"relay from PostgreSQL", stela::bench::postgres_relay_figures},
#endif
#ifdef STELA_BENCH_NATS
    {"relay to NATS", stela::bench::nats_relay_figures},
    {"delivery through NATS", stela::bench::nats_delivery_figures},
    {"consumer of NATS", stela::bench::nats_consumer_figures},
    {"relay over a line", stela::bench::nats_line_figures},
    {"memory of a relay to NATS", stela::bench::nats_memory_figures},
#endif
#if defined STELA_BENCH_POSTGRES && defined STELA_BENCH_NATS
    {"a shop", stela::bench::postgres_shop_figures},
#endif
};

/// What PostgreSQL's speed is told by.
constexpr const char* speed_patterns[] = {"speed.",          "rivals.",
                                          "shop.",           "postgres.read_all",
                                          "postgres.replay", "decision.conflicts.cold.64.full"};

struct Arguments {
  Settings settings;
  std::string json = "benchmarks.jsonl";
};

Arguments parse(const std::vector<std::string>& given) {
  Arguments arguments;
  arguments.settings.places.disk = std::filesystem::current_path();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto value = [&]() -> const std::string& {
      if (++i == given.size()) throw std::invalid_argument{given[i - 1] + " needs a value"};
      return given[i];
    };
    const std::string& option = given[i];
    if (option == "--quick") {
      arguments.settings.size = Settings::Size::quick;
    } else if (option == "--tiny") {
      arguments.settings.size = Settings::Size::tiny;
    } else if (option == "--figure") {
      arguments.settings.patterns.push_back(value());
    } else if (option == "--speed") {
      for (const char* const pattern : speed_patterns) {
        arguments.settings.patterns.emplace_back(pattern);
      }
    } else if (option == "--rounds") {
      const std::string& text = value();
      const auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), arguments.settings.rounds);
      if (error != std::errc{} || *end != '\0' || arguments.settings.rounds < 1) {
        throw std::invalid_argument{"--rounds is a number from 1 on"};
      }
    } else if (option == "--disk") {
      arguments.settings.places.disk = value();
    } else if (option == "--json") {
      arguments.json = value();
    } else {
      throw std::invalid_argument{"unknown option " + option};
    }
  }
  return arguments;
}

int run(const Arguments& arguments) {
  Bench bench{arguments.settings};
  for (const Group& group : groups) {
    std::cerr << group.name << '\n';
    group.run(bench);
  }
  std::cout << '\n';
  bench.report().print_table(std::cout);
  std::ofstream json{arguments.json};
  bench.report().print_json_lines(json);
  json.close();
  if (!json) throw std::runtime_error{arguments.json + " can't be written"};
  std::cout << "\nJSON lines: " << arguments.json << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> given{argv + 1, argv + argc};
  if (given.size() == 3 && given[0] == "--measure-memory") {
    return stela::bench::measure_memory(given[1], given[2] == "raw");
  }
  if (given.size() == 3 && given[0] == "--measure-replay-memory") {
    return stela::bench::measure_replay_memory(given[1], given[2] == "raw");
  }
#ifdef STELA_BENCH_NATS
  if (given.size() == 4 && given[0] == "--measure-relay-memory") {
    return stela::bench::measure_relay_memory(given[1], given[2], given[3] == "raw");
  }
#endif
  return run(parse(given));
} catch (const std::invalid_argument& e) {
  std::cerr << e.what() << '\n' << usage;
  return 2;
} catch (const std::exception& e) {
  std::cerr << "stela_benchmarks: " << e.what() << '\n';
  return 1;
}

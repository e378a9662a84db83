// Chaos: real processes, real files, a real nats-server and a bad network, from one seed.
//
// stela_chaos [--seconds N] [--seed S] [--kinds K,K,…] [--servers N] [--engine E]
//             [--mutant NAME] [--folder F]
//
// One JSON line of result. Exit 0 if everything holds; 1 if not: then the folder is kept, with the
// fault log, the databases and what stands in the streams. With a mutant it is the other way round.
#include "chaos/check.hpp"
#include "chaos/orchestra.hpp"
#include "chaos/roles.hpp"
#include "nats/jetstream.hpp"
#include "support/temp_dir.hpp"
#include "support/termination.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>

namespace stela::chaos {
namespace {

using Options = std::map<std::string, std::string>;

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  for (const auto& [name, value] : options) {
    static const std::string known[] = {"--seconds", "--seed",    "--kinds", "--mutant",
                                        "--folder",  "--role",    "--url",   "--number",
                                        "--dies",    "--servers", "--engine"};
    if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
      throw UsageError{"there is no option " + name};
    }
  }
  if (argc % 2 == 0) throw UsageError{"every option has a value"};
  return options;
}

std::string get(const Options& options, const std::string& name, const std::string& otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : found->second;
}

/// "all", or some of the kinds' names with commas between them.
std::set<std::string, std::less<>> parse_kinds(const std::string& text) {
  std::set<std::string, std::less<>> kinds;
  if (text == "all") return kinds;
  std::istringstream names{text};
  for (std::string name; std::getline(names, name, ',');) {
    const auto faults = all_faults();
    const auto phases = all_phases();
    const auto is_meant = [&](const auto& each) { return each.kind == name; };
    const bool is_known = std::any_of(faults.begin(), faults.end(), is_meant) ||
                          std::any_of(phases.begin(), phases.end(), is_meant);
    if (!is_known) throw UsageError{"there is no kind '" + name + "'"};
    kinds.insert(name);
  }
  return kinds;
}

Engine parse_engine(const std::string& name) {
  if (name == "sqlite") return Engine::sqlite;
  if (name == "postgres") return Engine::postgres;
  throw UsageError{"there is no engine '" + name + "'"};
}

/// "log:17", "answer:3".
Death parse_death(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(':');
  return {.at = text.starts_with("log:") ? Death::At::log : Death::At::answer,
          .nth = std::stoi(text.substr(colon + 1))};
}

void play_role(const std::string& role, const Settings& settings, const Options& options,
               const std::stop_token& stop) {
  const Part part{.number = std::stoi(get(options, "--number", "0")),
                  .url = get(options, "--url", ""),
                  .death = parse_death(get(options, "--dies", "")),
                  .stop = stop};
  if (role == "append") return append(settings, part);
  if (role == "relay") return relay(settings, part);
  if (role == "remind") return remind(settings, part);
  if (role == "consume") return consume(settings, part);
  throw UsageError{"there is no role '" + role + "'"};
}

void dump_streams(const Settings& settings, test::JetStream& broker) {
  std::ofstream dump{settings.folder + "/streams.txt"};
  for (const std::string& stream : broker.streams()) {
    for (const test::RawMessage& message : broker.drain(stream)) {
      dump << stream << ' ' << message.sequence << ' ' << message.subject;
      for (const auto& [name, value] : message.headers) dump << ' ' << name << '=' << value;
      dump << ' ' << message.payload << '\n';
    }
  }
}

void print(const World& world, const Findings& findings) {
  const Settings& settings = world.settings;
  std::string line;
  json::ObjectWriter result{line};
  result.add("seed", static_cast<std::int64_t>(settings.seed))
      .add("seconds", settings.seconds)
      .add("mutant", to_string(settings.mutant))
      .add("fence", to_string(settings.fence))
      .add("partitions", settings.partitions)
      .add("resized", settings.resized)
      .add("servers", settings.servers)
      .add("defaults", settings.defaults)
      .add("latency_ms", settings.latency_ms)
      .add("line_bytes", settings.line_bytes)
      .add("large_size", settings.large_size)
      .add("engine", settings.is_on_postgres() ? "postgres" : "sqlite")
      .add("durability", settings.relaxed ? "relaxed" : "full")
      .add("faults", world.faults)
      .add("deletions", static_cast<std::int64_t>(world.deletions.size()))
      .add("appended", findings.appended)
      .add("acknowledged", findings.acknowledged)
      .add("unanswered", findings.unanswered)
      .add("published", findings.published)
      .add("copies", findings.copies)
      .add("effects", findings.effects);
  std::string& violations = result.key("violations");
  violations += '[';
  for (const std::string& violation : findings.violations) {
    if (violations.back() != '[') violations += ',';
    json::append_string(violations, violation);
  }
  violations += ']';
  json::ObjectWriter kinds{result.key("kinds")};
  for (const auto& [kind, count] : world.by_kind) kinds.add(kind, count);
  kinds.close();
  result.close();
  std::cout << line << std::endl;
}

int orchestrate(Settings settings, const std::string& folder) {
  auto scratch = std::make_unique<test::TempDir>();
  settings.folder = folder.empty() ? scratch->path().string() : folder;
  Orchestra orchestra{settings};
  const bool drained = orchestra.play();
  World& world = orchestra.world();
  const std::string url = world.broker.url();
  test::JetStream broker{url};
  Findings findings = check(settings, url, world.deletions);
  if (drained && findings.violations.empty()) orchestra.play_phase();
  if (!drained) findings.violations.emplace_back("it didn't drain in time");
  for (const std::string& problem : world.problems) findings.violations.push_back(problem);
  print(world, findings);
  const bool expected = (settings.mutant != mutants::Mutant::none) != findings.violations.empty();
  if (expected) return 0;
  dump_streams(settings, broker);
  if (world.disk) {
    std::filesystem::copy(world.disk->file(""), settings.folder + "/kept",
                          std::filesystem::copy_options::recursive);
  }
  std::cerr << "seed " << settings.seed << ": what is left stands in " << settings.folder << '\n';
  if (folder.empty()) static_cast<void>(scratch.release());
  return 1;
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::string seed = get(options, "--seed", std::to_string(std::time(nullptr)));
  const std::string mutant = get(options, "--mutant", "none");
  Settings settings =
      Settings::draw(std::stoull(seed), std::stoi(get(options, "--seconds", "120")));
  settings.mutant = mutants::mutant_named(mutant);
  settings.kinds = parse_kinds(get(options, "--kinds", "all"));
  settings.servers = std::stoi(get(options, "--servers", "1"));
  settings.engine = parse_engine(get(options, "--engine", "sqlite"));
  if (settings.servers < 1) throw UsageError{"there is a server at least"};
  if (settings.has_by_name("delete-message")) settings.deletes = settings.fence == Fence::stream;
  if (settings.mutant != mutants::Mutant::none) {
    // What it breaks is the fenced chain; in a short run it has to break soon.
    settings.fence = Fence::stream;
    settings.resized = 0;
    settings.partitions = std::min(settings.partitions, 4);
    settings.defaults = settings.deletes = false;
    settings.large_size = 0;
    settings.servers = 1;
    settings.latency_ms = settings.line_bytes = 0;
    // A connection that is to be fast again needs some peace for that.
    settings.fault_ms = settings.mutant == mutants::Mutant::dedup_only ? 1'500 : 250;
  }
  const std::string folder = get(options, "--folder", "");
  const std::string role = get(options, "--role", "");
  if (role.empty()) return orchestrate(settings, folder);
  settings.folder = folder;
  const test::Termination termination;
  persist(termination.token(), [&] { play_role(role, settings, options, termination.token()); });
  return 0;
}

}  // namespace
}  // namespace stela::chaos

int main(int argc, char** argv) {
  try {
    return stela::chaos::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "chaos: " << e.what() << '\n';
    return 2;
  }
}

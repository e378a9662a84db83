// How much memory it takes to read a long history.
#include "bench.hpp"
#include "memory.hpp"
#include "raw_events.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>

namespace stela::bench {
namespace {

void read_everything(const std::string& path, bool raw) {
  std::size_t bytes = 0;
  if (raw) {
    RawReader reader{path};
    reader.read_all([&](auto, auto payload) { bytes += payload.size(); });
  } else {
    auto store = sqlite::open(path);
    for (const StoredEvent& event : store.read_all()) bytes += event.payload.size();
  }
  if (bytes == 0) throw std::runtime_error{path + " has no events"};
}

}  // namespace

double memory_kib(const std::string& field) {
  std::ifstream status{"/proc/self/status"};
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field)) return std::stod(line.substr(field.size() + 1));
  }
  throw std::runtime_error{"/proc/self/status doesn't tell"};
}

double in_own_process(const std::string& arguments) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "'" + program + "' " + arguments;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error{"no process"};
  std::array<char, 64> line{};
  const bool told = std::fgets(line.data(), line.size(), pipe) != nullptr;
  if (pclose(pipe) != 0 || !told) throw std::runtime_error{"measuring memory failed: " + command};
  return std::stod(line.data());
}

int measure_memory(const std::string& path, bool raw) {
  const double before = memory_kib("VmRSS");
  read_everything(path, raw);
  std::cout << (memory_kib("VmHWM") - before) / 1024 << '\n';
  return 0;
}

void memory_figures(Bench& bench) {
  const std::string name = "memory.read_all";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const std::size_t streams = bench.sized<std::size_t>(100, 10'000, 10'000);
  const std::size_t each = bench.sized<std::size_t>(10, 100, 100);
  const std::string path = folder.file("shop.db");
  make_shop(path, {.streams = streams, .events_each = each});
  std::vector<double> stela, raw, ratio;
  for (int round = 0; round < bench.rounds(3); ++round) {
    stela.push_back(in_own_process("--measure-memory '" + path + "' stela"));
    raw.push_back(in_own_process("--measure-memory '" + path + "' raw"));
    ratio.push_back(stela.back() / raw.back());
  }
  bench.report().add({.name = name,
                      .what = "peak of memory over the start while reading " +
                              in_digits(static_cast<double>(streams * each)) + " events",
                      .mode = "read",
                      .place = Place::disk,
                      .unit = "MiB",
                      .stela = spread_of(stela).median,
                      .raw = spread_of(raw).median,
                      .ratio = spread_of(ratio),
                      .goal = limit(32)});
}

}  // namespace stela::bench

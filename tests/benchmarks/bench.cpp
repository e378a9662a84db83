#include "bench.hpp"

#include <algorithm>
#include <iostream>

namespace stela::bench {

bool Bench::begins(std::string_view prefix) const {
  const auto fits = [&](std::string_view pattern) {
    const std::size_t shorter = std::min(prefix.size(), pattern.size());
    // The pattern may name more than the prefix does: what follows is told apart in the report.
    return prefix.find(pattern) != std::string_view::npos ||
           prefix.substr(0, shorter) == pattern.substr(0, shorter);
  };
  const auto& patterns = settings_.patterns;
  const bool asked = patterns.empty() || std::any_of(patterns.begin(), patterns.end(), fits);
  if (asked) std::cerr << "  " << prefix << "…\n";
  return asked;
}

int Bench::rounds(int whole) const noexcept {
  if (settings_.rounds > 0) return settings_.rounds;
  return sized(2, std::min(whole, 5), whole);
}

void Bench::add_rate(Figure figure, const Rounds& stela, const Rounds& raw, double events) {
  figure.ratio = speed_ratio(stela, raw);
  figure.stela = 1e9 * events / means_of(stela).median;
  figure.raw = 1e9 * events / means_of(raw).median;
  const auto add = [&](std::string name, double nanoseconds) {
    figure.more.emplace_back(std::move(name), nanoseconds / 1000);
  };
  add("stela_p50_us", p50s_of(stela).median);
  add("raw_p50_us", p50s_of(raw).median);
  add("stela_p99_us", p99s_of(stela).median);
  add("raw_p99_us", p99s_of(raw).median);
  figure.more.emplace_back("p50_ratio", p50_ratio(stela, raw).median);
  report_.add(std::move(figure));
}

}  // namespace stela::bench

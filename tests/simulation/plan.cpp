#include "simulation/plan.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace stela::sim {

namespace {

Fence draw_fence(Chance& chance) {
  const auto kind = chance.below(10);
  return kind < 7 ? Fence::stream : kind < 9 ? Fence::subject : Fence::none;
}

void draw_line(Chance& chance, Plan& plan) {
  constexpr Time round_trips[] = {0, 0, 5 * ms, 20 * ms, 100 * ms};
  constexpr Time questions[] = {0, ms / 20, ms / 2};
  constexpr std::int64_t bandwidths[] = {100'000, 1'000'000, 10'000'000};
  plan.line.round_trip = round_trips[chance.below(std::size(round_trips))];
  plan.line.question = questions[chance.below(std::size(questions))];
  if (chance.happens(0.7)) return;
  plan.line.bandwidth = bandwidths[chance.below(std::size(bandwidths))];
  plan.largest_payload = std::min<std::int64_t>(16 * 1024, plan.line.bandwidth / 50);
}

}  // namespace

Plan Plan::draw(std::uint64_t seed) {
  Chance chance{seed * 0x9e3779b97f4a7c15 + 1};
  Plan plan{.seed = seed};
  plan.fence = draw_fence(chance);
  plan.workers = static_cast<int>(chance.between(4, 6));
  plan.partitions = static_cast<int>(chance.happens(0.9) ? 16 : chance.between(17, 24));
  plan.streams = static_cast<int>(chance.between(3, 60));
  plan.faults_until = chance.between(300, 1'200) * second;
  plan.restore = plan.fence != Fence::none && chance.happens(0.1);
  if (chance.happens(0.05)) return draw_calm(seed);
  draw_line(chance, plan);
  return plan;
}

Plan Plan::draw_calm(std::uint64_t seed) {
  Chance chance{seed * 0x9e3779b97f4a7c15 + 2};
  Plan plan{.seed = seed,
            .fence = draw_fence(chance),
            .workers = static_cast<int>(chance.between(1, 4)),
            .streams = static_cast<int>(chance.between(20, 100)),
            .faults_until = chance.between(120, 300) * second,
            .appends_per_second = 20,
            .calm = true};
  draw_line(chance, plan);
  return plan;
}

void Plan::spread_over(int count) {
  partitions = count;
  streams = std::max(streams, 2 * count);
  if (calm) appends_per_second = std::max(appends_per_second, count / 4.0);
}

std::string_view to_string(Fault fault) noexcept {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Fault::count)> names{
      "kill",           "pause",           "disconnect",
      "broker_down",    "broker_full",     "missing",
      "forbids",        "lose_replies",    "late_bytes",
      "deaf",           "cut_off",         "slow_network",
      "store_busy",     "store_full",      "clock_step",
      "join",           "leave",           "resize",
      "poison",         "reject",          "retry_parked",
      "discard_parked", "republish",       "replay",
      "tail_lost",      "tail_unreadable", "foreign_writer",
      "aged_out",       "stream_out"};
  return names[static_cast<std::size_t>(fault)];
}

std::string_view to_string(Outage outage) noexcept {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Outage::count)> names{
      "silent", "mute", "no_quorum", "denied", "offline", "missing"};
  return names[static_cast<std::size_t>(outage)];
}

std::string_view to_string(ScriptedFault::Kind kind) noexcept {
  static constexpr std::array<std::string_view, 7> names{
      "kill", "pause", "lose_reply", "cut", "late_bytes", "lost_bytes", "refuse"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace stela::sim

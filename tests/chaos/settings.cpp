#include "chaos/settings.hpp"

#include <algorithm>
#include <array>
#include <random>

namespace stela::chaos {

Settings Settings::draw(std::uint64_t seed, int seconds) {
  std::mt19937_64 random{seed};
  const auto pick = [&](auto... values) {
    const std::array all{values...};
    return all[std::uniform_int_distribution<std::size_t>{0, all.size() - 1}(random)];
  };
  Settings settings{.seed = seed, .seconds = seconds};
  settings.fence = pick(Fence::stream, Fence::stream, Fence::stream, Fence::subject, Fence::none);
  settings.partitions = pick(4, 4, 16, 16, 1);
  settings.resized = settings.fence == Fence::stream ? pick(0, 1, 2, 4) : 0;
  if (settings.resized == settings.partitions) settings.resized = 0;
  settings.relaxed = pick(false, false, true);
  settings.batch_size = pick(20, 100, 500);
  settings.small_disk = pick(false, true);
  settings.defaults = pick(false, false, true);
  settings.latency_ms = pick(0, 0, 3, 10, 50);
  settings.line_bytes = pick(0, 0, 1'000'000);
  // One message of a partition is under way at a time: on slow lines no backlog would drain.
  if (settings.fence == Fence::subject) settings.latency_ms = settings.line_bytes = 0;
  if (!settings.small_disk && pick(false, true)) settings.large_size = 250'000;
  settings.deletes = settings.fence == Fence::stream && pick(false, false, true);
  // With short times they would be late on every slow line.
  const bool is_fast = settings.defaults || settings.line_bytes == 0;
  if (settings.large_size > 0 && is_fast && pick(false, true)) settings.large_size = 900'000;
  return settings;
}

std::string Settings::kinds_option() const {
  std::string names;
  for (const std::string& kind : kinds) names += (names.empty() ? "" : ",") + kind;
  return names.empty() ? "all" : names;
}

std::vector<std::string> Settings::streams() const {
  std::vector<std::string> names;
  const int most = fence == Fence::stream ? std::max(partitions, resized) : 1;
  if (fence != Fence::stream || partitions == 1 || resized == 1) names.push_back("SHOP");
  if (most == 1) return names;
  for (int i = 0; i < most; ++i) {
    names.push_back((i < 10 ? "SHOP_p0" : "SHOP_p") + std::to_string(i));
  }
  return names;
}

}  // namespace stela::chaos

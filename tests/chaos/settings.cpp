#include "chaos/settings.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <random>

namespace stela::chaos {

using relay::Mutation;

namespace {

struct Named {
  std::string_view name;
  Mutation mutation;
};

constexpr std::array names{
    Named{"none", Mutation::none},
    Named{"skip_failed_row", Mutation::skip_failed_row},
    Named{"mark_before_ack", Mutation::mark_before_ack},
    Named{"no_read_back_at_acquisition", Mutation::no_read_back_at_acquisition},
    Named{"dedup_only", Mutation::dedup_only},
};

}  // namespace

Settings Settings::draw(std::uint64_t seed, int seconds) {
  std::mt19937_64 random{seed};
  const auto pick = [&](auto... values) {
    const std::array all{values...};
    return all[std::uniform_int_distribution<std::size_t>{0, all.size() - 1}(random)];
  };
  Settings settings{.seed = seed, .seconds = seconds};
  settings.fence = pick(Fence::stream, Fence::stream, Fence::stream, Fence::subject, Fence::none);
  settings.partitions = pick(1, 1, 4, 4);
  settings.resized = settings.fence == Fence::stream ? pick(0, 1, 2, 4) : 0;
  if (settings.resized == settings.partitions) settings.resized = 0;
  settings.relaxed = pick(false, false, true);
  settings.batch_size = pick(20, 100, 500);
  return settings;
}

std::vector<std::string> Settings::streams() const {
  std::vector<std::string> names;
  const int most = fence == Fence::stream ? std::max(partitions, resized) : 1;
  if (fence != Fence::stream || partitions == 1 || resized == 1) names.push_back("SHOP");
  if (most == 1) return names;
  for (int i = 0; i < most; ++i) names.push_back("SHOP_p0" + std::to_string(i));
  return names;
}

Mutation mutation_named(const std::string& name) {
  for (const Named& known : names) {
    if (known.name == name) return known.mutation;
  }
  throw UsageError{"there is no mutant '" + name + "'"};
}

std::string_view name_of(Mutation mutation) {
  for (const Named& known : names) {
    if (known.mutation == mutation) return known.name;
  }
  return "unknown";
}

}  // namespace stela::chaos

#include <stela/eventstore/sqlite_settings.hpp>

namespace stela::sqlite {
namespace {

constexpr Setting<Options> for_stores[] = {
    // SQLite can't wait for longer.
    setting<&Options::busy_timeout>("busy_timeout", "how long to wait for others' locks",
                                    {.range = {.most = std::int64_t{24} * 24 * 3'600'000}}),
    setting<&Options::checkpoint_pages>(
        "checkpoint_pages", "pages in the log at which a checkpoint runs", {.range = {.least = 1}}),
};

}  // namespace

std::span<const Setting<Options>> settings() noexcept {
  return for_stores;
}

}  // namespace stela::sqlite

#include <stela/eventstore/detail/sqlite_settings.hpp>

namespace stela::sqlite {
namespace {

constexpr Setting<Options> for_stores[] = {
    setting<&Options::busy_timeout>("busy_timeout", "how long to wait for others' locks"),
    setting<&Options::checkpoint_pages>(
        "checkpoint_pages", "pages in the log at which a checkpoint runs", {.range = {.least = 1}}),
};

}  // namespace

std::span<const Setting<Options>> settings() noexcept {
  return for_stores;
}

}  // namespace stela::sqlite

// In each build, also in one without PostgreSQL, which knows the settings by name.
#include <stela/eventstore/detail/postgres_settings.hpp>

namespace stela::postgres {
namespace {

constexpr SettingRange day{.least = 1, .most = 86'400'000};

constexpr Setting<Options> for_stores[] = {
    setting<&Options::busy_timeout>("busy_timeout", "how long to wait for others' locks",
                                    {.range = day}),
    setting<&Options::schema>("schema", "on PostgreSQL: the schema of Stela's tables",
                              {.range = {.least = 1, .most = 63}}),
    setting<&Options::sql_schema>("sql_schema",
                                  "on PostgreSQL: the schema of your own SQL's tables",
                                  {.range = {.most = 63}, .unset = "<schema>_app"}),
    setting<&Options::readers>("readers",
                               "on PostgreSQL: connections that read; not set: 2 per core, 8 to 32",
                               {.range = {.least = 1, .most = 1000}}),
    setting<&Options::connect_timeout>(
        "connect_timeout", "on PostgreSQL: how long to wait for each host", {.range = day}),
    setting<&Options::reply_timeout>(
        "reply_timeout", "on PostgreSQL: a server silent for longer is lost", {.range = day}),
    setting<&Options::commit_timeout>(
        "commit_timeout", "on PostgreSQL: how long to settle a commit in doubt", {.range = day}),
};

}  // namespace

std::span<const Setting<Options>> settings() noexcept {
  return for_stores;
}

}  // namespace stela::postgres

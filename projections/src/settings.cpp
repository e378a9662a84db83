#include <stela/projections/detail/settings.hpp>

namespace stela {
namespace {

constexpr SettingLimits a_time{.range = {.least = 1}};

using P = ProjectorOptions;
constexpr Setting<P> for_projectors[] = {
    setting<&P::on_error>("on_error", "what becomes of an event whose handler fails to the end",
                          {.choices = "stop|park"}),
    setting<&P::max_attempts>("max_attempts", "tries before an event counts as failing",
                              {.range = {.least = 1}}),
    setting<&P::retry_backoff>("retry_backoff", "the first wait after a failure"),
    setting<&P::retry_backoff_max>("retry_backoff_max", "the longest wait after a failure"),
};

using R = RunnerOptions;
constexpr Setting<R> for_runners[] = {
    setting<&R::worker>("worker", "the runner's name; one is made if it is empty"),
    setting<&R::lease_ttl>("lease_ttl", "a runner silent for so long loses its projectors", a_time),
    setting<&R::idle_backoff>("idle_backoff", "how long to wait when there was nothing to do",
                              a_time),
    setting<&R::drop_after>("drop_after", "how long the tables of an old version are kept"),
    setting<&R::clock_jump_limit>(
        "clock_jump_limit", "the longest jump forward of the clock that timers follow at once",
        {.range = some_time}),
    setting<&R::unknown_version_wait>(
        "unknown_version_wait",
        "how long a projector waits for a runner that knows the version of an event",
        {.range = {.most = some_time.most}}),
};

}  // namespace

std::span<const Setting<ProjectorOptions>> projector_settings() noexcept {
  return for_projectors;
}

std::span<const Setting<RunnerOptions>> runner_settings() noexcept {
  return for_runners;
}

}  // namespace stela

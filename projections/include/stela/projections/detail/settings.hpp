// Descriptions of the options of projectors and runners: names, ranges and meanings.
#pragma once

#include <stela/framework/settings.hpp>
#include <stela/projections/export.hpp>
#include <stela/projections/projections.hpp>
#include <stela/projections/runner.hpp>

#include <span>

namespace stela {

STELA_PROJECTIONS_EXPORT std::span<const Setting<ProjectorOptions>> projector_settings() noexcept;
STELA_PROJECTIONS_EXPORT std::span<const Setting<RunnerOptions>> runner_settings() noexcept;

}  // namespace stela

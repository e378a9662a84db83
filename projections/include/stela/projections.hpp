// All of stela::projections.
#pragma once

#include <stela/projections/detail/model_reader.hpp>
#include <stela/projections/detail/settings.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/projections.hpp>
#include <stela/projections/replayer.hpp>
#include <stela/projections/runner.hpp>
#include <stela/projections/timers.hpp>
#include <stela/projections/transfer.hpp>

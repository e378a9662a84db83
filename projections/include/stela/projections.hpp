// All of stela::projections.
#pragma once

#include <stela/projections/model_reader.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/projections.hpp>
#include <stela/projections/replayer.hpp>
#include <stela/projections/runner.hpp>
#include <stela/projections/settings.hpp>
#include <stela/projections/timers.hpp>
#include <stela/projections/transfer.hpp>

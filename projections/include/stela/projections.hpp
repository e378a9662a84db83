// All of stela::projections.
#pragma once

#include <stela/projections/runner.hpp>

// All of stela::tool.
#pragma once

#include <stela/tool/app.hpp>
#include <stela/tool/metrics.hpp>
#include <stela/tool/readiness.hpp>
#include <stela/tool/run.hpp>

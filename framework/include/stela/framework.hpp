// All of stela::framework: the tools for writing a domain.
#pragma once

#include <stela/framework/aggregate_root.hpp>
#include <stela/framework/decision.hpp>
#include <stela/framework/event_bus.hpp>
#include <stela/framework/personal.hpp>
#include <stela/framework/repository.hpp>
#include <stela/framework/retry.hpp>
#include <stela/framework/unit_of_work.hpp>
#include <stela/framework/version.hpp>

// Everything for personal data: sealed fields, their keys, and forgetting.
#pragma once

#include <stela/eventstore/forget.hpp>
#include <stela/eventstore/keys.hpp>
#include <stela/framework/personal.hpp>

// All of stela::eventstore.
#pragma once

#include <stela/eventstore/sqlite.hpp>
#include <stela/eventstore/verify.hpp>

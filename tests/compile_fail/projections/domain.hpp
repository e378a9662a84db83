// What the cases about projections share.
#pragma once

#include "../domain.hpp"

#include <stela/projections.hpp>

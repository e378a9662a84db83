// Tenants: stores of their own, and the registry of them.
#pragma once

#include <stela/eventstore/tenants.hpp>

// All of stela::outbox.
#pragma once

#include <stela/outbox/bus_publisher.hpp>
#include <stela/outbox/care.hpp>
#include <stela/outbox/operations.hpp>
#include <stela/outbox/outbox.hpp>
#include <stela/outbox/relay.hpp>

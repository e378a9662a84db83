// What failures have in common, so that many can be seen, and dealt with, as one.
#pragma once

#include "database/connection.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace stela::outbox {

/// The first line of an error without what differs from message to message: numbers, ids, and what
/// stands in quotation marks.
std::string masked(std::string_view error);

/// "f3a09c21be47": of the reason, the event's type and the masked error. Begins with another letter
/// if the rule changes.
std::string failure_of(std::string_view reason, std::string_view type, std::string_view error);

/// Gives parked messages of an older Stela theirs, at most so many. How many.
std::int64_t fill_failures(database::Connection& connection, std::int64_t most);

}  // namespace stela::outbox

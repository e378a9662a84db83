// Groups similar failures, so that many can be seen and handled as one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stela::outbox {

/// The first line of an error without its variable parts: numbers, ids, and quoted text.
std::string masked(std::string_view error);

/// "f3a09c21be47": a hash of the reason, the event's type and the masked error. The first letter
/// changes with the rule.
std::string failure_of(std::string_view reason, std::string_view type, std::string_view error);

}  // namespace stela::outbox

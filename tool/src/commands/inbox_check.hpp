// `inbox check`, for monitoring systems.
#pragma once

#include "cli/arguments.hpp"
#include "cli/command.hpp"

#include <string>

namespace stela::nats {
class InboxOperations;
}

namespace stela::tool {

Command inbox_check_command();

/// The consumer named by --consumer. Empty if none was given. Exit if the inbox has no such
/// consumer.
std::string consumer_of(const Arguments& arguments, nats::InboxOperations& inbox);

}  // namespace stela::tool

// The facts of an outbox.
#pragma once

#include "database/connection.hpp"

#include <stela/outbox/publisher.hpp>

#include <optional>
#include <string_view>

namespace stela::outbox {

struct Settings {
  Fence fence = Fence::stream;
  bool leasing = true;
};

/// SchemaMismatch if the fence is unknown.
Fence parse_fence(std::string_view text);

/// Unset if there is no outbox yet.
std::optional<Settings> find_settings(database::Connection& connection);

}  // namespace stela::outbox

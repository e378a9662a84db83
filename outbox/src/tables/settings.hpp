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

/// SchemaMismatch if there is no such fence.
Fence parse_fence(std::string_view text);

/// Nothing if the outbox isn't made yet.
std::optional<Settings> find_settings(database::Connection& connection);

}  // namespace stela::outbox

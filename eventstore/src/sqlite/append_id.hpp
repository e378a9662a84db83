// Looks up append ids.
#pragma once

#include "database/sqlite/connection.hpp"

#include <stela/framework/event_store.hpp>

#include <optional>
#include <string_view>

namespace stela::sqlite {

/// The sequences of the append with this id, if it was committed. CorruptEvent if they don't match
/// their checksum.
std::optional<AppendResult> find_append_id(Connection& connection, std::string_view append_id);

}  // namespace stela::sqlite

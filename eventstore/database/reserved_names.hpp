// Which tables in a database are Stela's.
#pragma once

#include <stela/eventstore/export.hpp>

#include <string_view>

namespace stela::database {

/// True for a name that a table of a module of Stela's has, or may get: now or later.
STELA_EVENTSTORE_EXPORT bool is_reserved_name(std::string_view name) noexcept;

}  // namespace stela::database

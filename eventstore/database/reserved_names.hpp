// Which tables in a database belong to Stela.
#pragma once

#include <stela/eventstore/export.hpp>

#include <string_view>

namespace stela::database {

/// True for a name that a table of a Stela module has, or may get in future. The event store's own
/// names are reserved only in databases that hold one.
STELA_EVENTSTORE_EXPORT bool is_reserved_name(std::string_view name) noexcept;

/// The same, including the tables of the event store.
STELA_EVENTSTORE_EXPORT bool is_stela_table(std::string_view name) noexcept;

/// Whether the name is one of a build's tables: "totals@1.orders".
STELA_EVENTSTORE_EXPORT bool is_read_model_table(std::string_view name) noexcept;

}  // namespace stela::database

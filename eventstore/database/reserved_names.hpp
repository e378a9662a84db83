// Which tables in a database are Stela's.
#pragma once

#include <stela/eventstore/export.hpp>

#include <string_view>

namespace stela::database {

/// True for a name that a table of a module of Stela's has, or may get: now or later. Those of the
/// event store itself are taken only in the databases that have it.
STELA_EVENTSTORE_EXPORT bool is_reserved_name(std::string_view name) noexcept;

/// The same, and the tables of the event store.
STELA_EVENTSTORE_EXPORT bool is_stela_table(std::string_view name) noexcept;

/// Whether a projector's build has tables of such names: "totals@1.orders".
STELA_EVENTSTORE_EXPORT bool is_read_model_table(std::string_view name) noexcept;

}  // namespace stela::database

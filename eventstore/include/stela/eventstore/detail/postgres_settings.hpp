// Descriptions of the PostgreSQL store's options: names, ranges and meanings.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/postgres.hpp>
#include <stela/framework/settings.hpp>

#include <span>

namespace stela::postgres {

STELA_EVENTSTORE_EXPORT std::span<const Setting<Options>> settings() noexcept;

}  // namespace stela::postgres

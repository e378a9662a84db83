// Descriptions of the SQLite store's options: names, ranges and meanings.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/sqlite.hpp>
#include <stela/framework/settings.hpp>

#include <span>

namespace stela::sqlite {

STELA_EVENTSTORE_EXPORT std::span<const Setting<Options>> settings() noexcept;

}  // namespace stela::sqlite

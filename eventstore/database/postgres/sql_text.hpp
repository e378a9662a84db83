// SQL as text, before PostgreSQL sees it.
#pragma once

#include <stela/eventstore/export.hpp>

#include <string>
#include <string_view>

namespace stela::postgres {

/// With ?1 written as $1, as PostgreSQL writes parameters. What is quoted or a comment stays.
STELA_EVENTSTORE_EXPORT std::string with_dollars(std::string_view sql);

/// Stela's own SQL, for its tables in another schema: "stela." and "stela," name that one.
STELA_EVENTSTORE_EXPORT std::string in_schema(std::string_view sql, std::string_view schema);

/// "name", whatever is in it.
STELA_EVENTSTORE_EXPORT std::string quoted(std::string_view name);

/// The first word, in lower case; empty if there is none.
STELA_EVENTSTORE_EXPORT std::string first_word(std::string_view sql);

}  // namespace stela::postgres

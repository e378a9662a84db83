// SQL text, before PostgreSQL sees it.
#pragma once

#include <stela/eventstore/export.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stela::postgres {

/// Writes ?1 as $1, as PostgreSQL does. Quoted text and comments stay.
STELA_EVENTSTORE_EXPORT std::string with_dollars(std::string_view sql);

/// The numbers of the parameters ?1, ?2 …; with the other mark, of $1, $2 …
STELA_EVENTSTORE_EXPORT std::set<std::size_t> parameters_in(std::string_view sql, char mark = '?');

/// Whether `name` occurs as a name, quoted or not: not in a text, a comment or a longer name.
STELA_EVENTSTORE_EXPORT bool names(std::string_view sql, std::string_view name);

/// The names, numbers, quoted texts and single characters, without blanks and comments. Names are
/// in lower case.
STELA_EVENTSTORE_EXPORT std::vector<std::string> pieces_of(std::string_view sql);

/// Replaces {name} by the quoted name, in lower case, as PostgreSQL treats unquoted names.
STELA_EVENTSTORE_EXPORT std::string with_names(std::string_view sql);

/// Stela's own SQL with another schema in place of "stela." and "stela,".
STELA_EVENTSTORE_EXPORT std::string in_schema(std::string_view sql, std::string_view schema);

/// Quotes any name: "name".
STELA_EVENTSTORE_EXPORT std::string quoted(std::string_view name);

/// The first word, in lower case; empty if there is none.
STELA_EVENTSTORE_EXPORT std::string first_word(std::string_view sql);

}  // namespace stela::postgres

// SQL as text, before PostgreSQL sees it.
#pragma once

#include <stela/eventstore/export.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stela::postgres {

/// With ?1 written as $1, as PostgreSQL writes parameters. What is quoted or a comment stays.
STELA_EVENTSTORE_EXPORT std::string with_dollars(std::string_view sql);

/// The numbers of the parameters ?1, ?2 … in it; with the other mark, of $1, $2 …
STELA_EVENTSTORE_EXPORT std::set<std::size_t> parameters_in(std::string_view sql, char mark = '?');

/// Whether it has `name` in it as a name, quoted or not: not in a text, a comment or a longer name.
STELA_EVENTSTORE_EXPORT bool names(std::string_view sql, std::string_view name);

/// Its names, numbers, quoted texts and single characters, without blanks and comments; names in
/// lower case.
STELA_EVENTSTORE_EXPORT std::vector<std::string> pieces_of(std::string_view sql);

/// With the name in {name} as a quoted one, in lower case, as names without quotes are.
STELA_EVENTSTORE_EXPORT std::string with_names(std::string_view sql);

/// Stela's own SQL, for its tables in another schema: "stela." and "stela," name that one.
STELA_EVENTSTORE_EXPORT std::string in_schema(std::string_view sql, std::string_view schema);

/// "name", whatever is in it.
STELA_EVENTSTORE_EXPORT std::string quoted(std::string_view name);

/// The first word, in lower case; empty if there is none.
STELA_EVENTSTORE_EXPORT std::string first_word(std::string_view sql);

}  // namespace stela::postgres

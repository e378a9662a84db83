// Parameters and results of the user's SQL, in the server's form.
#pragma once

#include "database/postgres/parameters.hpp"
#include "database/postgres/result.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/rows.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace stela::postgres {

/// The server infers the types of texts. `values` must outlive the run.
STELA_EVENTSTORE_EXPORT Parameters to_parameters(std::span<const SqlValue> values);

/// UsageError if `sql` contains a zero byte, or unless its parameters are exactly ?1, ?2 … up to
/// the number of `values`.
STELA_EVENTSTORE_EXPORT void check_parameters(std::string_view sql, std::size_t values);

/// Converts a result that came as text. Integers and booleans become integers, other numbers real
/// numbers, bytea bytes; any other type is the server's text.
STELA_EVENTSTORE_EXPORT Rows rows_of(const Result& result);

}  // namespace stela::postgres

// Parameters and results of the user's SQL, as the server has them.
#pragma once

#include "database/postgres/parameters.hpp"
#include "database/postgres/result.hpp"

#include <stela/eventstore/export.hpp>
#include <stela/eventstore/rows.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace stela::postgres {

/// Texts have the type that the server finds for them. `values` must outlive the run.
STELA_EVENTSTORE_EXPORT Parameters to_parameters(std::span<const SqlValue> values);

/// UsageError if `sql` has a zero byte, or unless the parameters of `sql` are ?1, ?2 …, so many,
/// none of them left out.
STELA_EVENTSTORE_EXPORT void check_parameters(std::string_view sql, std::size_t values);

/// Of a result that came as text. Integers and flags are integers, other numbers are real, bytea is
/// bytes, and any other type is the text that the server makes of it.
STELA_EVENTSTORE_EXPORT Rows rows_of(const Result& result);

}  // namespace stela::postgres

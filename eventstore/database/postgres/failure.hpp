// PostgreSQL's errors as Stela's exceptions.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/error.hpp>

#include <libpq-fe.h>

#include <string>
#include <string_view>

namespace stela::postgres {

/// The connection ended, or the server didn't answer in time: whether the last request was carried
/// out is unknown.
class STELA_EVENTSTORE_EXPORT ConnectionLost final : public StoreBusy {
 public:
  explicit ConnectionLost(const std::string& what) : StoreBusy{what} {}
};

/// Throws the exception for `result`, an error that ended `doing`.
[[noreturn]] STELA_EVENTSTORE_EXPORT void fail(const PGresult* result, std::string_view doing);

/// Throws the exception for `said`, libpq's message about a failed connection to `place`, which
/// holds no password.
[[noreturn]] void fail_to_connect(std::string said, const std::string& place);

/// The SQLSTATE of an error; empty if it has none.
std::string_view state_of(const PGresult* result) noexcept;

}  // namespace stela::postgres

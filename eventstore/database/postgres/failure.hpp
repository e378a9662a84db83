// What PostgreSQL says when something fails, as Stela's exceptions.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/error.hpp>

#include <libpq-fe.h>

#include <string>
#include <string_view>

namespace stela::postgres {

/// The connection ended, or the server said nothing in time: whether it carried out what it was
/// asked last isn't known.
class STELA_EVENTSTORE_EXPORT ConnectionLost final : public StoreBusy {
 public:
  explicit ConnectionLost(const std::string& what) : StoreBusy{what} {}
};

/// Throws what `result` means, an error that ended `doing`.
[[noreturn]] STELA_EVENTSTORE_EXPORT void fail(const PGresult* result, std::string_view doing);

/// Throws what `said` means, libpq's words about a connection that couldn't be made to `place`,
/// which holds no password.
[[noreturn]] void fail_to_connect(std::string said, const std::string& place);

/// The SQLSTATE of an error; empty if it has none.
std::string_view state_of(const PGresult* result) noexcept;

}  // namespace stela::postgres

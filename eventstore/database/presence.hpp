// How processes that use one database see which of them run.
#pragma once

#include <stela/eventstore/export.hpp>

#include <cstdint>

namespace stela::database {

/// Ends with the process, however that ends, and everybody who has the database sees it.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Presence {
 public:
  virtual ~Presence() = default;

  /// No other presence in this database has it.
  virtual std::int64_t number() const noexcept = 0;
  /// Appears again if somebody has tidied it away.
  virtual void renew() = 0;
};

}  // namespace stela::database

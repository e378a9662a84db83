// Shows the processes of one database which of them are running.
#pragma once

#include <stela/eventstore/export.hpp>

#include <cstdint>

namespace stela::database {

/// Ends with the process, however that ends, visibly to every user of the database.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT Presence {
 public:
  virtual ~Presence() = default;

  /// Unique among the presences in this database.
  virtual std::int64_t number() const noexcept = 0;
  /// Appears again if another process has removed it.
  virtual void renew() = 0;
};

}  // namespace stela::database

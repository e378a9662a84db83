// Tells what a database failed with while somebody else's code worked on it.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/export.hpp>

#include <exception>
#include <string>
#include <string_view>

namespace stela::database {

/// Sees what a database fails with while a handler works on it. What the handler throws doesn't
/// tell: it may wrap the failure, or pass on the same of another store's.
/// Threads: the one that makes it.
class STELA_EVENTSTORE_EXPORT FailureWatch {
 public:
  explicit FailureWatch(const Connection& connection);
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// For the end of a handler that threw: throws what the database failed with, if it did.
  void rethrow_failure() const;

  /// True if anybody watches on this thread.
  static bool is_watching() noexcept;
  /// The exception that is being handled, which the database failed with.
  static void note(const DatabaseName& database) noexcept;

 private:
  const DatabaseName database_;
  FailureWatch* const outer_;
  std::exception_ptr failure_;
};

}  // namespace stela::database

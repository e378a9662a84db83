// Tells what a database failed with while somebody else's code worked on it.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/export.hpp>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace stela::database {

/// Sees what a database fails with while a handler works on it. What the handler throws doesn't
/// tell: it may wrap the failure, or pass on the same of another store's. It also sees the
/// handler's own statements that were refused, which the handler may have got over. Threads: the
/// one that makes it.
class STELA_EVENTSTORE_EXPORT FailureWatch {
 public:
  explicit FailureWatch(const Connection& connection);
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// For the end of a handler that threw: throws what the database failed with, if it did.
  void rethrow_failure() const;
  /// For the end of a handler that returned: what the first of its statements was refused with
  /// since this was asked last; empty if none was.
  std::string take_refusal() noexcept { return std::exchange(refusal_, {}); }

  /// True if anybody watches on this thread.
  static bool is_watching() noexcept;
  /// The exception that is being handled, which the database failed with.
  static void note(const DatabaseName& database) noexcept;
  /// The exception that is being handled is one that a statement of the handler's was refused with.
  static void note_refusal(const DatabaseName& database) noexcept;

 private:
  const DatabaseName database_;
  FailureWatch* const outer_;
  std::exception_ptr failure_;
  std::string refusal_;
};

}  // namespace stela::database

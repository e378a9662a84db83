// Tells how a database failed while foreign code worked on it.
#pragma once

#include "database/connection.hpp"

#include <stela/eventstore/export.hpp>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace stela::database {

/// Records the failures of a database while a handler works on it. The handler's exception can't
/// tell: it may wrap the failure, or pass on a failure of another store. The watch also records
/// refused statements of the handler, which may have recovered from them. Threads: the one that
/// makes it.
class STELA_EVENTSTORE_EXPORT FailureWatch {
 public:
  explicit FailureWatch(const Connection& connection);
  ~FailureWatch();
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  /// Called after a handler threw: throws the database's failure, if there was one.
  void rethrow_failure() const;
  /// Called after a handler returned: the error of its first statement refused since the last call;
  /// empty if none was.
  std::string take_refusal() noexcept { return std::exchange(refusal_, {}); }

  /// True if there is a watch on this thread.
  static bool is_watching() noexcept;
  /// Records the exception being handled as a failure of the database.
  static void note(const DatabaseName& database) noexcept;
  /// Records the exception being handled as a refusal of one of the handler's statements.
  static void note_refusal(const DatabaseName& database) noexcept;

 private:
  const DatabaseName database_;
  FailureWatch* const outer_;
  std::exception_ptr failure_;
  std::string refusal_;
};

}  // namespace stela::database

// Whether a thread is inside a transaction.
#pragma once

#include <stela/framework/export.hpp>

namespace stela::detail {

/// A store holds one while it runs the work of a transaction. All writers wait meanwhile, so that
/// nothing may pause in there.
/// Threads: belongs to the thread that made it, and ends there.
class STELA_FRAMEWORK_EXPORT TransactionScope {
 public:
  TransactionScope() noexcept;
  ~TransactionScope();
  TransactionScope(const TransactionScope&) = delete;
  TransactionScope& operator=(const TransactionScope&) = delete;

  /// True on a thread that is in one, of whichever store.
  static bool is_open() noexcept;
};

}  // namespace stela::detail

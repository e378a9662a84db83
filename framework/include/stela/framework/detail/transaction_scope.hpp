// Tells whether a thread is inside a transaction.
#pragma once

#include <stela/framework/export.hpp>

namespace stela::detail {

/// A store holds one while it runs the work of a transaction. All other writers wait meanwhile, so
/// nothing may pause inside. Threads: belongs to the thread that created it, and must end there.
class STELA_FRAMEWORK_EXPORT TransactionScope {
 public:
  TransactionScope() noexcept;
  ~TransactionScope();
  TransactionScope(const TransactionScope&) = delete;
  TransactionScope& operator=(const TransactionScope&) = delete;

  /// True if this thread is inside one, of any store.
  static bool is_open() noexcept;
};

}  // namespace stela::detail

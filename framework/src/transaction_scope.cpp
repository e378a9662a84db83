#include <stela/framework/detail/transaction_scope.hpp>

namespace stela::detail {
namespace {

thread_local int depth = 0;

}  // namespace

TransactionScope::TransactionScope() noexcept {
  ++depth;
}

TransactionScope::~TransactionScope() {
  --depth;
}

bool TransactionScope::is_open() noexcept {
  return depth > 0;
}

}  // namespace stela::detail

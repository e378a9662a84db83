#include <stela/framework/detail/forks.hpp>

#include <pthread.h>

#include <atomic>

namespace stela::detail {

int count_forks() noexcept {
  static std::atomic<int> forks{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

}  // namespace stela::detail

// A reference to a callable, valid for the length of a call.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace stela {

template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<Result, F&, Args...>)
      // NOLINTNEXTLINE: stands for the callable wherever one is asked for, but not for its own kind
      FunctionRef(F&& f)
  noexcept
      : object_{const_cast<void*>(static_cast<const void*>(std::addressof(f)))},
        call_{[](void* object, Args... args) -> Result {
          return (*static_cast<std::add_pointer_t<F>>(object))(std::forward<Args>(args)...);
        }} {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace stela

// Errors as text.
#pragma once

#include <string>
#include <utility>

namespace stela::test {

/// The text of the `E` that `call` throws; any other exception passes through.
template <class E, class Call>
std::string message_of(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace stela::test

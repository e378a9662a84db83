// How many cases of a random test to look at.
#pragma once

namespace stela::test {

/// `all`, and a fifth where a sanitizer makes each case several times as slow.
constexpr int samples_of(int all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return all / 5;
#else
  return all;
#endif
}

}  // namespace stela::test

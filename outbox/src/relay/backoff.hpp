// Waits of a relay that grow.
#pragma once

#include "follow/backoff.hpp"

#include <stela/outbox/relay_options.hpp>

#include <chrono>

namespace stela::relay {

inline follow::Backoff backoff_of(const RelayOptions& options) {
  return {options.retry_backoff, options.retry_backoff_max, options.retry_jitter};
}

/// The longest wait that it gives.
inline std::chrono::microseconds longest_backoff(const RelayOptions& options) {
  return backoff_of(options).longest();
}

}  // namespace stela::relay

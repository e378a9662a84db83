// Appends that are made on another thread than the caller's.
#pragma once

#include <stela/framework/event_store.hpp>

#include <cstddef>
#include <exception>

namespace stela {

/// Receives the outcome of a deferred append.
class AppendClient {
 public:
  /// Called once, on the thread that runs `Store::Core::carry_out`. It may destroy the append.
  virtual void complete(std::exception_ptr error, AppendResult result) noexcept = 0;

 protected:
  ~AppendClient() = default;
};

/// A prepared append: checked, and with its context encoded.
class DeferredAppend {
 public:
  virtual ~DeferredAppend() = default;
  /// The total size of its payloads.
  virtual std::size_t size() const noexcept = 0;
};

/// Appends that wait for a thread, in order.
class DeferredAppends {
 public:
  /// The next append, which lives until its client is told; null if there is none of at most
  /// `bytes`. It must not block.
  virtual DeferredAppend* take(std::size_t bytes) noexcept = 0;

 protected:
  ~DeferredAppends() = default;
};

}  // namespace stela

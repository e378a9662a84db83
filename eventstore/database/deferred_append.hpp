// Appends that are made on another thread than the one that asks for them.
#pragma once

#include <stela/framework/event_store.hpp>

#include <cstddef>
#include <exception>

namespace stela {

/// Who is told how a deferred append has ended.
class AppendClient {
 public:
  /// Once, on the thread that calls `Store::Core::carry_out`. The append may be destroyed in it.
  virtual void complete(std::exception_ptr error, AppendResult result) noexcept = 0;

 protected:
  ~AppendClient() = default;
};

/// An append that is ready to be made: checked, and with its context encoded.
class DeferredAppend {
 public:
  virtual ~DeferredAppend() = default;
  /// Of its payloads.
  virtual std::size_t size() const noexcept = 0;
};

/// Those that wait for a thread, in order.
class DeferredAppends {
 public:
  /// The next one, which lives until its client is told; null if there is none of so many bytes or
  /// fewer. It mustn't block.
  virtual DeferredAppend* take(std::size_t bytes) noexcept = 0;

 protected:
  ~DeferredAppends() = default;
};

}  // namespace stela

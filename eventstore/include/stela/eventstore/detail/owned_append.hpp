// An append that owns its contents.
#pragma once

#include <stela/eventstore/export.hpp>
#include <stela/framework/event_store.hpp>

#include <memory>

namespace stela {

/// A copy of an AppendRequest and of all that it refers to: streams, events, context, condition.
/// Threads: one at a time.
class STELA_EVENTSTORE_EXPORT OwnedAppend {
 public:
  /// Uses the context of the calling thread, unless the request names one.
  explicit OwnedAppend(const AppendRequest& request);
  ~OwnedAppend();
  OwnedAppend(OwnedAppend&&) noexcept;
  OwnedAppend& operator=(OwnedAppend&&) noexcept;

  /// Stays where it is when this object is moved.
  const AppendRequest& request() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace stela

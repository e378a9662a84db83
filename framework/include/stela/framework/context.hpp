// Who and what an event is recorded for: correlation, cause, actor, trace, headers.
#pragma once

#include <stela/framework/export.hpp>
#include <stela/framework/uuid.hpp>

#include <map>
#include <string>

namespace stela {

struct StoredEvent;

/// What every event carries beside its payload. An empty field is one that isn't set.
struct Context {
  /// Groups all that one request led to. Events saved together share one: if none is set, the id
  /// of the first of them.
  std::string correlation_id = {};
  /// The event that was being handled when this one was recorded.
  EventId causation_id = {};
  std::string actor = {};
  /// W3C trace context.
  std::string traceparent = {};
  std::string tracestate = {};
  std::map<std::string, std::string> headers = {};
  /// True while a replay feeds handlers: nothing may be recorded.
  bool is_replaying = false;

  friend bool operator==(const Context&, const Context&) = default;
};

/// Sets the context of this thread for as long as the scope lives; what it leaves empty is
/// inherited from the scope around it. Loading aggregates doesn't touch it.
/// Threads: a scope belongs to the thread that made it, and ends there.
class STELA_FRAMEWORK_EXPORT ContextScope {
 public:
  /// UsageError if a value can't be stored: a control character, a name that isn't a header name,
  /// or more than 64 KiB in all.
  explicit ContextScope(Context context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  /// The scope in which `event` is handled: what is recorded in it inherits all of its context and
  /// names it as its cause.
  static ContextScope handling(const StoredEvent& event);
  /// The scope in which a replay hands out events.
  static ContextScope replaying(const StoredEvent& event);

 private:
  struct Whole {};
  ContextScope(Whole, Context context);

  Context context_;
  const Context* outer_;
};

/// The context of this thread; all empty outside any scope.
STELA_FRAMEWORK_EXPORT const Context& current_context() noexcept;

/// True in a handler that a replay calls.
inline bool is_replaying() noexcept {
  return current_context().is_replaying;
}

}  // namespace stela

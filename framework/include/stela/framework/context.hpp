// The context in which an event is recorded: correlation, cause, actor, trace, headers.
#pragma once

#include <stela/framework/export.hpp>
#include <stela/framework/uuid.hpp>

#include <map>
#include <string>

namespace stela {

struct StoredEvent;

/// The data that every event carries beside its payload. An empty field isn't set.
struct Context {
  /// Groups all events that one request led to. Events that are saved together share one. If none
  /// is set, it is the id of the first of them.
  std::string correlation_id = {};
  /// The event that was being handled when this one was recorded.
  EventId causation_id = {};
  std::string actor = {};
  /// W3C trace context.
  std::string traceparent = {};
  std::string tracestate = {};
  std::map<std::string, std::string> headers = {};
  /// True while a replay calls handlers. Nothing may be recorded then.
  bool is_replaying = false;

  friend bool operator==(const Context&, const Context&) = default;
};

/// Sets the context of this thread while the scope lives. Empty fields are inherited from the
/// enclosing scope. Loading aggregates doesn't change the context. Threads: a scope belongs to the
/// thread that created it. It must end there, and before the scopes that enclose it: otherwise the
/// process is aborted with a message, because other work of the thread would get its context. A
/// coroutine must therefore not keep a scope across a suspension; it passes its context through
/// `SaveOptions::context`, `UnitOfWork` or `DecideOptions::context`.
class STELA_FRAMEWORK_EXPORT ContextScope {
 public:
  /// UsageError if a value can't be stored: it has a control character, a header's name isn't
  /// valid, or the context exceeds 64 KiB.
  explicit ContextScope(Context context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  /// A scope that inherits nothing from the enclosing one, except that it is a replay. UsageError
  /// as above.
  static ContextScope exactly(Context context);
  /// A scope for handling `event`. Events that are recorded in it inherit its whole context, and
  /// name it as their cause.
  static ContextScope handling(const StoredEvent& event);
  /// The scope in which a replay calls handlers for `event`.
  static ContextScope replaying(const StoredEvent& event);

 private:
  struct Whole {};
  ContextScope(Whole, Context context);
  struct Checked {};
  ContextScope(Checked, Context context);

  Context context_;
  const Context* outer_;
};

/// The context of this thread. All fields are empty outside of any scope.
STELA_FRAMEWORK_EXPORT const Context& current_context() noexcept;

/// True in a handler that a replay calls.
inline bool is_replaying() noexcept {
  return current_context().is_replaying;
}

namespace detail {

/// Calls `work` in exactly this context; if it is null, in that of the thread.
template <class Work>
decltype(auto) in_context(const Context* context, Work&& work) {
  if (context == nullptr) return work();
  const auto scope = ContextScope::exactly(*context);
  return work();
}

}  // namespace detail
}  // namespace stela

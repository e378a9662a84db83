#include <stela/framework/context.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/stored_event.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace stela {
namespace {

thread_local const Context* current = nullptr;

void inherit(std::string& own, const std::string& outer) {
  if (own.empty()) own = outer;
}

Context merged(Context own, const Context& outer) {
  inherit(own.correlation_id, outer.correlation_id);
  inherit(own.actor, outer.actor);
  inherit(own.traceparent, outer.traceparent);
  inherit(own.tracestate, outer.tracestate);
  if (own.causation_id.is_nil()) own.causation_id = outer.causation_id;
  own.headers.insert(outer.headers.begin(), outer.headers.end());
  own.is_replaying = own.is_replaying || outer.is_replaying;
  return own;
}

Context caused_by(const StoredEvent& event) {
  Context context = event.context();
  context.correlation_id = event.correlation_id();
  context.causation_id = event.id;
  return context;
}

[[noreturn]] void abort_misplaced_end() noexcept {
  std::fputs(
      "stela: a ContextScope ended on another thread than the one it began on, or before a scope "
      "inside it. No scope may live across a suspension of a coroutine: give the context to the "
      "unit of work, the save or the decision instead\n",
      stderr);
  std::abort();
}

}  // namespace

ContextScope::ContextScope(Context context)
    : ContextScope{Checked{}, merged(std::move(context), current_context())} {}

ContextScope::ContextScope(Checked, Context context) : ContextScope{Whole{}, std::move(context)} {
  // Checked after merging, because the limit applies to the whole context.
  metadata::check(context_);
}

ContextScope::ContextScope(Whole, Context context) : context_{std::move(context)}, outer_{current} {
  current = &context_;
}

ContextScope::~ContextScope() {
  // Otherwise this thread, or the one that created the scope, would keep a dangling pointer.
  if (current != &context_) abort_misplaced_end();
  current = outer_;
}

ContextScope ContextScope::exactly(Context context) {
  context.is_replaying = context.is_replaying || stela::is_replaying();
  return ContextScope{Checked{}, std::move(context)};
}

ContextScope ContextScope::handling(const StoredEvent& event) {
  return ContextScope{Whole{}, caused_by(event)};
}

ContextScope ContextScope::replaying(const StoredEvent& event) {
  Context context = caused_by(event);
  context.is_replaying = true;
  return ContextScope{Whole{}, std::move(context)};
}

const Context& current_context() noexcept {
  static const Context none;
  return current != nullptr ? *current : none;
}

}  // namespace stela

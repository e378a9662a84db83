#include <stela/framework/context.hpp>
#include <stela/framework/metadata.hpp>
#include <stela/framework/stored_event.hpp>

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

}  // namespace

ContextScope::ContextScope(Context context)
    : ContextScope{Whole{}, merged(std::move(context), current_context())} {
  // Checked when it is whole: the limit is for all of it.
  try {
    metadata::check(context_);
  } catch (...) {
    current = outer_;
    throw;
  }
}

ContextScope::ContextScope(Whole, Context context) : context_{std::move(context)}, outer_{current} {
  current = &context_;
}

ContextScope::~ContextScope() {
  current = outer_;
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

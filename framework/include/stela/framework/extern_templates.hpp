// Compiles the code for an application's aggregates and events in one file, for shorter builds.
//
// Every file that loads, saves or appends compiles the codecs of the events that it uses. The
// header of a domain can say that one file compiles them for all. Write this outside of any
// namespace, with full names:
//
//     STELA_EXTERN_AGGREGATE(shop::Order);
//     STELA_EXTERN_EVENT(shop::PaymentReceived);
//
// And in that one file:
//
//     STELA_COMPILE_AGGREGATE(shop::Order);
//     STELA_COMPILE_EVENT(shop::PaymentReceived);
//
// The lines of an aggregate include its events. An event needs its own lines if it is appended
// without an aggregate, or read by projectors, reactions, consumers or listeners. Behaviour doesn't
// change. If the second half is missing, the linker reports it.
#pragma once

#include <stela/framework/detail/event_encoder.hpp>
#include <stela/framework/event_set.hpp>
#include <stela/framework/repository.hpp>
#include <stela/framework/unit_of_work.hpp>

/// Another file compiles the code for `A`.
#define STELA_EXTERN_AGGREGATE(A) STELA_TEMPLATES_OF_AGGREGATE(extern, A)
/// This file compiles it.
#define STELA_COMPILE_AGGREGATE(A) STELA_TEMPLATES_OF_AGGREGATE(, A)
/// The same for an event.
#define STELA_EXTERN_EVENT(E) STELA_TEMPLATES_OF_EVENT(extern, E)
#define STELA_COMPILE_EVENT(E) STELA_TEMPLATES_OF_EVENT(, E)

// The common part of both halves. `extern` only affects functions that aren't inline.
#define STELA_TEMPLATES_OF_AGGREGATE(how, A)                                  \
  how template void stela::detail::encode_changes<A::EventsType::Variant>(    \
      stela::detail::EventEncoder&, std::span<const A::EventsType::Variant>); \
  how template std::optional<A> stela::detail::load_aggregate<A>(             \
      stela::EventLog&, const stela::StreamId&, const stela::Moment&);        \
  how template class stela::Repository<A>;                                    \
  how template struct stela::UnitOfWork::TrackedAggregate<A>;                 \
  how template A* stela::UnitOfWork::find<A>(const stela::Id<A>&);            \
  how template A& stela::UnitOfWork::add<A>(A);                               \
  how template A& stela::UnitOfWork::track<A>(A)
#define STELA_TEMPLATES_OF_EVENT(how, E)                           \
  how template void stela::detail::EventEncoder::add<E>(const E&); \
  how template E stela::detail::decode_event<E>(stela::Reading, const stela::StoredEvent&)

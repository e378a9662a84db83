// Appends events of any streams to a test's store.
#pragma once

#include <stela/framework/unit_of_work.hpp>
#include <stela/projections_testing/export.hpp>
#include <stela/testing/scenario.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace stela::testing {

/// The stream of an event: "order-7", a StreamId or an Id.
struct STELA_PROJECTIONS_TESTING_EXPORT Stream {
  Stream(const char* name);         // NOLINT(google-explicit-constructor)
  Stream(const std::string& name);  // NOLINT(google-explicit-constructor)
  Stream(StreamId the_id);          // NOLINT(google-explicit-constructor)
  template <class A>
  Stream(const stela::Id<A>& aggregate) : id{aggregate.stream()} {}  // NOLINT

  StreamId id;
};

namespace detail {

/// Appends events, variants of events and vectors of either to the end of a stream.
template <class... Es>
AppendResult append(EventLog& log, const Stream& stream, const Es&... events) {
  UnitOfWork unit{log};
  const auto add = [&](const auto& event) {
    unit.append(stream.id, ExpectedVersion::any(), event);
  };
  (for_each_event(events, add), ...);
  return unit.commit();
}

/// "order-7: order.placed v1 {…}", for comparing expected and stored events.
template <class E>
std::string render_on(const Stream& stream, const E& event) {
  return stream.id.name() + ": " + render_as_stored(event);
}
/// Shows personal fields unencrypted.
STELA_PROJECTIONS_TESTING_EXPORT std::string render_stored(const StoredEvent& event, Keyring* keys);

}  // namespace detail
}  // namespace stela::testing

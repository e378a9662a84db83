// Given events, then rows: tests of a projector.
#pragma once

#include <stela/eventstore/store.hpp>
#include <stela/projections/detail/model_reader.hpp>
#include <stela/projections/projections.hpp>
#include <stela/projections_testing/export.hpp>
#include <stela/projections_testing/history.hpp>
#include <stela/testing/manual_clock.hpp>
#include <stela/testing/memory_keys.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::testing {
namespace detail {

/// A store in memory, and what reads the tables in it.
class STELA_PROJECTIONS_TESTING_EXPORT Bench {
 public:
  Bench();
  /// ScenarioFailed, with both lists, unless `sql` gives these rows.
  void expect_rows(std::string_view sql, const std::vector<std::string>& rows);
  void rebuild();
  /// ScenarioFailed unless a rebuild leaves the tables as they are.
  void expect_same_after_rebuild();
  void forget(const StreamId& subject);
  /// Of all tables, as text, in order.
  std::vector<std::string> all_rows();

  ManualClock clock;
  MemoryKeys keys;
  Store store;
  Projections projections;
  ModelReader reader;
};

}  // namespace detail

/// A projector with its tables, in memory. What a handler throws reaches the test.
///
///     stela::testing::ProjectorScenario{OpenOrders{}}
///         .given("order-1", Placed{"ada", 4200})
///         .given("order-2", Placed{"bob", 100}, Cancelled{})
///         .then("SELECT id, cents FROM open_orders", {"1 | 4200"});
///
/// Threads: one at a time.
template <Projector P>
class ProjectorScenario {
 public:
  explicit ProjectorScenario(P projector) { bench_.projections.add_inline(std::move(projector)); }

  /// Projects events of one stream: events, variants of events, vectors of either. Those that the
  /// projector doesn't handle pass it by.
  template <class... Es>
  ProjectorScenario& given(const Stream& stream, const Es&... events) {
    detail::append(bench_.store, stream, events...);
    return *this;
  }

  /// So much time passes before the next events.
  ProjectorScenario& after(std::chrono::microseconds time) {
    bench_.clock.advance(time);
    return *this;
  }

  /// These events end in an `X`, whose text contains `message`, and leave the tables as they were.
  template <class X, class... Es>
  ProjectorScenario& refuses(std::string_view message, const Stream& stream, const Es&... events) {
    std::exception_ptr error;
    try {
      detail::append(bench_.store, stream, events...);
    } catch (...) {
      error = std::current_exception();
    }
    detail::expect_thrown<X>(error, message);
    return *this;
  }

  /// `sql` gives exactly these rows, in this order. A row is its values with " | " between them,
  /// NULL among them; bytes are shown as x'0aff'.
  ProjectorScenario& then(std::string_view sql, const std::vector<std::string>& rows) {
    bench_.expect_rows(sql, rows);
    return *this;
  }

  /// Builds the tables again from the events, as a new version or a replay does: what is expected
  /// afterwards shows that the projector makes the same of them.
  ProjectorScenario& rebuild() {
    bench_.rebuild();
    return *this;
  }

  /// Somebody is forgotten: later events of his can't be given, and the projector's `forget` is
  /// called.
  ProjectorScenario& forget(const Stream& subject) {
    bench_.forget(subject.id);
    return *this;
  }

  /// Builds the tables again, and compares them with what they were: what was forgotten doesn't
  /// come back, and nothing else is gone.
  ProjectorScenario& equals_rebuild() {
    bench_.expect_same_after_rebuild();
    return *this;
  }

  /// Reads the tables, for expectations of one's own.
  ModelReader& reader() noexcept { return bench_.reader; }
  /// The time at which events are recorded; it stands still unless it is moved.
  ManualClock& clock() noexcept { return bench_.clock; }

 private:
  detail::Bench bench_;
};

}  // namespace stela::testing

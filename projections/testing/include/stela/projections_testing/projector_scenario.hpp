// Tests of a projector: given events, then rows.
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

/// A store in memory, and a reader of the tables in it.
class STELA_PROJECTIONS_TESTING_EXPORT Bench {
 public:
  Bench();
  /// ScenarioFailed, with both lists, unless `sql` returns these rows.
  void expect_rows(std::string_view sql, const std::vector<std::string>& rows);
  void rebuild();
  /// ScenarioFailed unless a rebuild reproduces the tables.
  void expect_same_after_rebuild();
  void forget(const StreamId& subject);
  /// The rows of all tables as text, in order.
  std::vector<std::string> all_rows();

  ManualClock clock;
  MemoryKeys keys;
  Store store;
  Projections projections;
  ModelReader reader;
};

}  // namespace detail

/// A projector with its tables, in memory. Exceptions of handlers reach the test.
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

  /// Projects events of one stream: events, variants of events, vectors of either. Unhandled events
  /// are ignored.
  template <class... Es>
  ProjectorScenario& given(const Stream& stream, const Es&... events) {
    detail::append(bench_.store, stream, events...);
    return *this;
  }

  /// Lets time pass before the next events.
  ProjectorScenario& after(std::chrono::microseconds time) {
    bench_.clock.advance(time);
    return *this;
  }

  /// Projecting these events must throw an `X` whose text contains `message`, and leave the tables
  /// unchanged.
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

  /// `sql` returns exactly these rows, in this order. A row is its values joined by " | ",
  /// including NULL; bytes are shown as x'0aff'.
  ProjectorScenario& then(std::string_view sql, const std::vector<std::string>& rows) {
    bench_.expect_rows(sql, rows);
    return *this;
  }

  /// Rebuilds the tables from the events, as a new version or a replay does: later expectations
  /// show that the result is the same.
  ProjectorScenario& rebuild() {
    bench_.rebuild();
    return *this;
  }

  /// Forgets a person: later events with the person's data are refused, and the projector's
  /// `forget` is called.
  ProjectorScenario& forget(const Stream& subject) {
    bench_.forget(subject.id);
    return *this;
  }

  /// Rebuilds the tables and compares them with the previous ones: forgotten data doesn't come
  /// back, and nothing else is missing.
  ProjectorScenario& equals_rebuild() {
    bench_.expect_same_after_rebuild();
    return *this;
  }

  /// Reads the tables, for a test's own expectations.
  ModelReader& reader() noexcept { return bench_.reader; }
  /// The time at which events are recorded, moved only by `after` or the test.
  ManualClock& clock() noexcept { return bench_.clock; }

 private:
  detail::Bench bench_;
};

}  // namespace stela::testing

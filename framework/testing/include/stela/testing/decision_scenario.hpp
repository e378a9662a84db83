// Given, when, then: tests of a decision without a store of your own.
#pragma once

#include <stela/framework/decision.hpp>
#include <stela/testing/export.hpp>
#include <stela/testing/memory_store.hpp>
#include <stela/testing/scenario.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace stela::testing {

/// An event with its stream: for events of aggregates, which declare no tags.
template <Event E>
struct InStream {
  StreamId stream;
  E event;
};

/// `given(in(student, StudentRegistered{"jane"}), …)`
template <Event E>
InStream<E> in(StreamId stream, E event) {
  return {std::move(stream), std::move(event)};
}

/// An event that a decision recorded.
struct RecordedEvent {
  EventId id;
  StreamId stream;
  std::string type;
  int schema_version = 1;
  Timestamp recorded_at;
  /// JSON, with personal fields in clear.
  std::string payload;
};

/// The result of `when`. Each expectation returns it again, so that they can be chained.
class STELA_TESTING_EXPORT DecisionOutcome {
 public:
  DecisionOutcome(std::vector<RecordedEvent> recorded, std::exception_ptr error)
      : recorded_{std::move(recorded)}, error_{std::move(error)} {}

  /// Exactly these events were recorded, in this order, and nothing was thrown.
  template <Event... Es>
  DecisionOutcome& then(const Es&... events) {
    expect_no_error();
    detail::compare_events({detail::render_as_stored(events)...}, render_recorded());
    return *this;
  }

  /// Nothing was recorded, and nothing was thrown.
  DecisionOutcome& then_nothing() { return then(); }

  /// An `X` was thrown; if `message` is given, its text contains that. Nothing was recorded.
  template <class X>
  DecisionOutcome& throws(std::string_view message = {}) {
    detail::expect_thrown<X>(error_, message);
    return *this;
  }

  /// The recorded events, for your own expectations. ScenarioFailed if something was thrown.
  std::vector<RecordedEvent> recorded() const {
    expect_no_error();
    return recorded_;
  }

  /// The recorded event of this type, also if it is stored as its previous version (`record_as`).
  /// ScenarioFailed unless there is exactly one.
  template <Event E>
  E recorded() const {
    constexpr EventType stored = detail::StoredAs<E>::Type::event_type;
    return stela::detail::decode_version<E>(
        Codec::json, stored.version, only(stored.name, stored.version).payload, {.is_clear = true});
  }

 private:
  void expect_no_error() const;
  std::vector<std::string> render_recorded() const;
  const RecordedEvent& only(std::string_view type, int version) const;

  std::vector<RecordedEvent> recorded_;
  std::exception_ptr error_;
};

/// A history to decide on.
class STELA_TESTING_EXPORT DecisionScenario {
 public:
  DecisionScenario();
  ~DecisionScenario();
  DecisionScenario(DecisionScenario&&) noexcept;

  template <class E>
  void add(const E& event) {
    static_assert(stela::detail::Tagged<E>,
                  "stela: given() can't tell the stream of an event without tags; write "
                  "in(stream, event)");
    add_to(stela::detail::first_tag(event), event);
  }
  template <class E>
  void add(const InStream<E>& placed) {
    add_to(placed.stream, placed.event);
  }
  template <class E>
  void add(const std::vector<E>& events) {
    for (const E& event : events) add(event);
  }

  /// Sets the time of decisions and of events added later. Without it, the system's time.
  DecisionScenario& at(Timestamp time) noexcept;
  /// Advances the time. `given(…).later(std::chrono::hours{1}).when(…)`
  DecisionScenario& later(std::chrono::microseconds by) noexcept;

  /// Decides once: `when(Subscribe{course, student})`, or views and a callable.
  template <class... Arguments>
  DecisionOutcome when(Arguments&&... arguments) {
    return decide([&](EventLog& log) { (void)stela::decide(log, arguments...); });
  }

 private:
  template <class E>
  void add_to(const StreamId& stream, const E& event) {
    UnitOfWork unit{log()};
    unit.append(stream, ExpectedVersion::any(), event);
    unit.commit();
  }
  EventLog& log() noexcept;
  DecisionOutcome decide(FunctionRef<void(EventLog&)> run);

  class Time;
  std::unique_ptr<Time> time_;
  std::unique_ptr<MemoryStore> store_;
};

/// `given(CourseDefined{…}, Subscribed{…}).when(Subscribe{course, student}).throws<Full>()`
template <class First, class... Rest>
DecisionScenario given(const First& first, const Rest&... rest) {
  DecisionScenario scenario;
  scenario.add(first);
  (scenario.add(rest), ...);
  return scenario;
}

/// `given_nothing().when(DefineCourse{course, 20}).then(CourseDefined{course, 20})`
inline DecisionScenario given_nothing() {
  return {};
}

}  // namespace stela::testing

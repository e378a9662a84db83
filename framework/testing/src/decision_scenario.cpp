#include <stela/framework/codec/detail/sealed_value.hpp>
#include <stela/testing/decision_scenario.hpp>

#include <optional>

namespace stela::testing {

/// The system's clock, until a time is set.
class DecisionScenario::Time final : public Clock {
 public:
  Timestamp now() const override { return set_ ? *set_ : system_clock().now(); }
  std::chrono::steady_clock::time_point steady_now() const override {
    return system_clock().steady_now();
  }
  void set(Timestamp time) noexcept { set_ = time; }

 private:
  std::optional<Timestamp> set_;
};

DecisionScenario::DecisionScenario()
    : time_{std::make_unique<Time>()},
      store_{std::make_unique<MemoryStore>(MemoryStore::Options{.clock = time_.get()})} {}
DecisionScenario::~DecisionScenario() = default;
DecisionScenario::DecisionScenario(DecisionScenario&&) noexcept = default;

DecisionScenario& DecisionScenario::at(Timestamp time) noexcept {
  time_->set(time);
  return *this;
}

DecisionScenario& DecisionScenario::later(std::chrono::microseconds by) noexcept {
  return at(time_->now() + by);
}

EventLog& DecisionScenario::log() noexcept {
  return *store_;
}

DecisionOutcome DecisionScenario::decide(FunctionRef<void(EventLog&)> run) {
  const GlobalSequence before = store_->last_sequence();
  try {
    run(*store_);
  } catch (...) {
    return {{}, std::current_exception()};
  }
  std::vector<RecordedEvent> recorded;
  for (const StoredEvent& event : store_->read_all({.from = before.next()})) {
    recorded.push_back(
        {event.id, event.stream, event.type(), event.schema_version(), event.recorded_at,
         codec::reveal(event.payload,
                       {store_->conventions().keys, codec::Place::of_event(event.id)})});
  }
  return {std::move(recorded), nullptr};
}

std::vector<std::string> DecisionOutcome::render_recorded() const {
  std::vector<std::string> all;
  for (const RecordedEvent& event : recorded_) {
    all.push_back(event.type + " v" + std::to_string(event.schema_version) + ' ' + event.payload);
  }
  return all;
}

const RecordedEvent& DecisionOutcome::only(std::string_view type, int version) const {
  expect_no_error();
  const RecordedEvent* found = nullptr;
  int count = 0;
  for (const RecordedEvent& event : recorded_) {
    if (event.type == type && event.schema_version == version) found = &event, ++count;
  }
  if (count == 1) return *found;
  detail::fail("expected one event '" + std::string{type} + "', but " + std::to_string(count) +
               " were recorded");
}

void DecisionOutcome::expect_no_error() const {
  if (error_) detail::fail("expected no exception, got " + detail::describe(error_));
}

}  // namespace stela::testing

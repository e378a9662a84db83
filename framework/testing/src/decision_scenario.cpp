#include <stela/testing/decision_scenario.hpp>

namespace stela::testing {

DecisionScenario::DecisionScenario() : store_{std::make_unique<MemoryStore>()} {}
DecisionScenario::~DecisionScenario() = default;
DecisionScenario::DecisionScenario(DecisionScenario&&) noexcept = default;

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
  std::vector<std::string> recorded;
  for (const StoredEvent& event : store_->read_all({.from = before.next()})) {
    recorded.push_back(event.type() + " v" + std::to_string(event.schema_version()) + ' ' +
                       std::string{event.payload});
  }
  return {std::move(recorded), nullptr};
}

void DecisionOutcome::expect_no_error() const {
  if (error_) detail::fail("expected no exception, got " + detail::describe(error_));
}

}  // namespace stela::testing

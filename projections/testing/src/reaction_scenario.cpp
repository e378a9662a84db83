#include <stela/framework/decision.hpp>
#include <stela/projections_testing/reaction_scenario.hpp>

namespace stela::testing {

void ReactionOutcome::expect_events(const std::vector<std::string>& expected) const {
  if (error_) detail::fail("expected no exception, got " + detail::describe(error_));
  detail::compare_events(expected, recorded_);
}

namespace detail {

ReactionOutcome run_reaction(MemoryStore& store, GlobalSequence event,
                             const std::function<void(UnitOfWork&, const StoredEvent&)>& react) {
  std::exception_ptr error;
  for (const StoredEvent& stored : store.read_at({&event, 1})) {
    const ContextScope scope = ContextScope::handling(stored);
    try {
      store.transact([&](Transaction& transaction) {
        UnitOfWork unit{transaction};
        stela::detail::UnitAccess::lend(unit, true);
        react(unit, stored);
        stela::detail::UnitAccess::lend(unit, false);
        unit.commit();
      });
    } catch (...) {
      error = std::current_exception();
    }
  }
  std::vector<std::string> recorded;
  for (const StoredEvent& after : store.read_all({.from = GlobalSequence{event.value() + 1}})) {
    recorded.push_back(render_stored(after, store.conventions().keys));
  }
  return {std::move(recorded), std::move(error)};
}

}  // namespace detail
}  // namespace stela::testing

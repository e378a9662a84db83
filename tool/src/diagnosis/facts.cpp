#include "diagnosis/facts.hpp"

#include "commands/server_measures.hpp"

namespace stela::tool {

Facts ask(StoreSession& session, const std::string& program) {
  Store& store = session.store();
  Facts facts{.at = store.conventions().clock->now(), .call = program + ' '};
  const Measure writing = measure_writing(session);
  if (writing.state() != ok) {
    facts.store_problem = writing.problem;
    // Where no commit becomes durable, the rest would only wait.
    if (session.place().is_on_server()) return facts;
  }
  if (session.has_outbox()) facts.outbox = session.operations().status();
  facts.projectors = ProjectionOperations{store}.status();
  TimerOperations timers{store};
  facts.processes = timers.processes();
  facts.holds = timers.holds();
  facts.consumers = nats::InboxOperations{store}.status();
  facts.acknowledged = Journal{store}.acknowledgements();
  return facts;
}

}  // namespace stela::tool

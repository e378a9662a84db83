#include "diagnosis/facts.hpp"

#include "asked_broker.hpp"
#include "commands/server_measures.hpp"

namespace stela::tool {

Facts ask(StoreSession& session, Invocation& call) {
  Store& store = session.store();
  Facts facts{.at = store.conventions().clock->now(), .call = call.app.name + ' '};
  if (session.place().is_on_server()) facts.server = postgres::server_status(store);
  const Measure writing = measure_writing(session);
  if (writing.state() != ok) {
    facts.store_problem = writing.problem;
    // Where no commit becomes durable, the rest would only wait.
    if (session.place().is_on_server()) return facts;
  }
  if (session.has_outbox()) {
    facts.outbox = session.operations().status();
    if (facts.outbox->parked > 0) facts.failures = session.operations().groups();
    if (call.settings().is_set("nats.url")) {
      facts.broker = look_at_broker(call.settings(), *facts.outbox, session.partitioner());
    }
  }
  facts.projectors = ProjectionOperations{store}.status();
  TimerOperations timers{store};
  facts.processes = timers.processes();
  facts.holds = timers.holds();
  facts.consumers = nats::InboxOperations{store}.status();
  facts.acknowledged = Journal{store}.acknowledgements();
  return facts;
}

}  // namespace stela::tool

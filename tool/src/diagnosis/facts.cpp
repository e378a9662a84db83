#include "diagnosis/facts.hpp"

#include "asked_broker.hpp"
#include "commands/server_measures.hpp"

#include <algorithm>

namespace stela::tool {
namespace {

bool is_silent(const WorkerStatus& worker) {
  return !worker.is_alive && worker.process == WorkerProcess::runs;
}

/// Waits for the lock, as they do.
std::string find_lock_problem(Store& store, const OutboxStatus& status) try {
  if (std::none_of(status.workers.begin(), status.workers.end(), is_silent)) return {};
  // Without a change.
  store.transact([](Transaction&) {});
  return {};
} catch (const StoreBusy& e) {
  return e.what();
} catch (const Error&) {
  // Of this user, or of this moment: it says nothing of the workers.
  return {};
}

}  // namespace

Facts ask(StoreSession& session, Invocation& call) {
  Store& store = session.store();
  Facts facts{.at = store.conventions().clock->now(), .call = call.app.name + ' '};
  const Measure writing = measure_writing(session);
  if (writing.state() != ok) {
    facts.store_problem = writing.problem;
    // Where no commit becomes durable, the rest would only wait.
    if (session.place().is_on_server()) return facts;
  }
  if (session.has_outbox()) {
    facts.outbox = session.operations().status();
    if (!session.place().is_on_server()) {
      facts.lock_problem = find_lock_problem(store, *facts.outbox);
    }
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

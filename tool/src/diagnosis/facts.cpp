#include "diagnosis/facts.hpp"

#include "asked_broker.hpp"
#include "commands/server_measures.hpp"

#include <algorithm>

namespace stela::tool {
namespace {

void note(Facts& facts, Code code, const std::string& subject, Timestamp at) {
  auto& since = facts.since.try_emplace({code, subject}, at).first->second;
  since = std::min(since, at);
}

/// Asked for only where there is some: the oldest of what is parked or missing.
void ask_since(StoreSession& session, Facts& facts) {
  for (const FailureGroup& group : facts.failures) {
    note(facts, Code::outbox_parked, {}, group.first_at);
  }
  ProjectionOperations projections{session.store()};
  for (const ProjectorStatus& one : facts.projectors) {
    if (one.parked == 0 || one.state != BuildState::living) continue;
    for (const ParkedEvent& event : projections.parked(one.name)) {
      if (event.state == ParkedEventState::skipped) continue;
      note(facts, Code::projector_parked, one.name, event.parked_at);
    }
  }
  nats::InboxOperations inbox{session.store()};
  for (const nats::ConsumerStatus& one : facts.consumers) {
    if (one.gaps == 0) continue;
    for (const nats::Gap& gap : inbox.gaps({.consumer = one.consumer, .limit = 1})) {
      note(facts, Code::consumer_gaps, one.consumer, gap.seen_at);
    }
  }
}

}  // namespace

void ask_followers(Store& store, Facts& facts) {
  facts.projectors = ProjectionOperations{store}.status();
  TimerOperations timers{store};
  facts.processes = timers.processes();
  facts.holds = timers.holds();
  facts.consumers = nats::InboxOperations{store}.status();
  facts.acknowledged = Journal{store}.acknowledgements();
}

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
  facts.last = store.last_sequence();
  if (session.has_outbox()) {
    facts.outbox = session.operations().status();
    if (facts.outbox->parked > 0) facts.failures = session.operations().groups();
    if (call.settings().is_set("nats.url")) {
      facts.broker = look_at_broker(call.settings(), *facts.outbox, session.partitioner());
    }
  }
  ask_followers(store, facts);
  ask_since(session, facts);
  return facts;
}

}  // namespace stela::tool

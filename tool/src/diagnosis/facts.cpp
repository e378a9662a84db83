#include "diagnosis/facts.hpp"

#include "asked_broker.hpp"
#include "commands/server_measures.hpp"

#include <stela/framework/detail/function_ref.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

void note(Facts& facts, Code code, const std::string& subject, Timestamp at) {
  auto& since = facts.since.try_emplace({code, subject}, at).first->second;
  since = std::min(since, at);
}

constexpr std::chrono::seconds longest_asked{5};

/// Queries one part after the other.
class Asking {
 public:
  Asking(Facts& facts, AskedUntil until) : facts_{facts}, until_{until} {}

  void ask(const std::string& what, FunctionRef<void()> question) const {
    if (until_ && std::chrono::steady_clock::now() >= *until_) {
      facts_.unanswered.push_back({what, "the database was too slow until here"});
      return;
    }
    try {
      question();
    } catch (const Error& e) {
      facts_.unanswered.push_back({what, e.what()});
    }
  }

 private:
  Facts& facts_;
  AskedUntil until_;
};

/// Queries only where there is something: the oldest parked or missing item.
void ask_since(StoreSession& session, Facts& facts) {
  ProjectionOperations projections{session.store()};
  for (const ProjectorStatus& one : facts.projectors) {
    if (one.parked == 0 || one.state != BuildState::living) continue;
    for (const ParkedEvent& event : projections.parked(one.name)) {
      if (event.state == ParkedEventState::skipped) continue;
      note(facts, Code::projector_parked, one.name, event.parked_at);
      facts.first_parked.try_emplace(one.name, event.sequence);
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

void ask_followers(Store& store, Facts& facts, AskedUntil until) {
  const Asking asking{facts, until};
  asking.ask("projectors", [&] { facts.projectors = ProjectionOperations{store}.status(); });
  asking.ask("timers", [&] {
    TimerOperations timers{store};
    facts.processes = timers.processes();
    facts.holds = timers.holds();
  });
  asking.ask("consumers", [&] { facts.consumers = nats::InboxOperations{store}.status(); });
  asking.ask("known findings", [&] { facts.acknowledged = Journal{store}.acknowledgements(); });
}

std::string way_to_reach(ErrorCode code, bool is_on_server) {
  switch (code) {
    case ErrorCode::store_busy:
      return is_on_server ? "start the database's server, or see why it hangs and who holds a lock "
                            "there; workers continue by themselves"
                          : "end the process that it names, or let it finish; workers continue by "
                            "themselves";
    case ErrorCode::store_full:
      return "free some space; workers continue by themselves";
    case ErrorCode::store_failed:
      return is_on_server ? "start the database's server, or correct its location (db) and the "
                            "rights of this role; workers continue by themselves"
                          : "name the right file (db); if it is that and damaged, restore a backup "
                            "of it";
    case ErrorCode::schema_mismatch:
      return "name the right database (db), use the program that fits it, or do what it says";
    default:
      return {};
  }
}

Facts facts_without_store(const Error& error, Invocation& call) {
  return {.at = system_clock().now(),
          .call = call.app.name + ' ',
          .store_problem = error.what(),
          .store_remedy = way_to_reach(error.code(), call.place().is_on_server())};
}

Facts ask(StoreSession& session, Invocation& call) {
  Store& store = session.store();
  const bool is_on_server = session.place().is_on_server();
  AskedUntil until;
  if (is_on_server) until = std::chrono::steady_clock::now() + longest_asked;
  Facts facts{.at = store.conventions().clock->now(), .call = call.app.name + ' '};
  const Asking asking{facts, until};
  if (is_on_server) {
    asking.ask("server", [&] { facts.server = postgres::server_status(store); });
  }
  StoreTrouble writing;
  if (facts.server) writing = trouble_of(*facts.server, session.place());
  if (!is_on_server) writing = trouble_of_writing(session);
  facts.store_problem = writing.what;
  facts.store_remedy = writing.remedy;
  // If commits don't become durable, other queries would only wait.
  if (!writing.what.empty() && is_on_server) return facts;
  asking.ask("events", [&] { facts.last = store.last_sequence(); });
  if (is_on_server && !facts.server && !facts.last) {
    facts.store_problem = facts.unanswered.back().why;
    facts.store_remedy = way_to_reach(ErrorCode::store_busy, true);
    facts.unanswered.clear();
    return facts;
  }
  asking.ask("outbox", [&] {
    if (!session.has_outbox()) return;
    facts.outbox = session.operations().status();
    if (facts.outbox->parked > 0) facts.failures = session.operations().groups();
  });
  ask_followers(store, facts, until);
  asking.ask("beginnings of findings", [&] { ask_since(session, facts); });
  if (facts.outbox && call.settings().is_set("nats.url")) {
    facts.broker = look_at_broker(call.settings(), *facts.outbox, session.partitioner());
  }
  return facts;
}

}  // namespace stela::tool

#include "worker/dashboard.hpp"

#include "cli/text.hpp"
#include "worker/dashboard_layout.hpp"
#include "worker/looks.hpp"
#include "worker/partition_table.hpp"
#include "worker/screen.hpp"

#include <unistd.h>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

/// The redraw interval while nobody types.
constexpr auto refresh = 500ms;

/// A database that answers may still refuse this process's writes.
std::string problem_of_heartbeats(const Figures& done, std::chrono::microseconds ttl) {
  if (done.heartbeat_age <= ttl) return {};
  const std::string why = done.troubles.empty() ? "" : ": " + done.troubles.front().message;
  return "no heartbeat could be written for " + in_words(done.heartbeat_age) + why;
}

}  // namespace

bool can_show_dashboard(const Output& out) {
  return out.can_draw() && isatty(STDIN_FILENO) == 1;
}

void show_dashboard(Watched& watched, bool color) {
  Screen screen{color};
  View view;
  Looks looks;
  while (!watched.has_ended()) {
    if (!looks.paused) view = watched.look();
    const Frame frame = lay_out(view, looks, screen.size());
    looks.scroll = frame.scroll;
    screen.draw(frame.lines);
    const int key = screen.wait_for_key(watched.is_ending() ? 50ms : refresh);
    if (key != 0 && take_key(looks, key, frame.page)) watched.leave();
  }
}

View WatchedCrew::look() {
  StatusWatch::Seen seen = watch_.look(refresh - 50ms);
  Figures done = statistics_.look(std::chrono::steady_clock::now());
  if (!seen.is_stale) {
    watch_.ask([&](OutboxOperations& outbox) { sight_.look(outbox, seen.status, done.ever); });
  }
  View view{.command = options_.program + " outbox work",
            .program = options_.program,
            .database = options_.database,
            .own = OwnWork{.worker = options_.worker,
                           .broker_url = options_.broker_url,
                           .window = options_.window,
                           .lease_ttl = options_.lease_ttl,
                           .done = std::move(done)},
            .status = std::move(seen.status),
            .beside = std::move(seen.beside),
            .store_problem = std::move(seen.problem),
            .is_stale = seen.is_stale};
  if (view.store_problem.empty()) {
    view.store_problem = problem_of_heartbeats(view.own->done, options_.heartbeat_ttl);
    view.beside.store_remedy =
        "end what holds the database up, as it says; the worker continues by itself";
  }
  view.own->state =
      state_of(view.own->done, view.status, crew_.stop_requested(), !view.store_problem.empty());
  freshen(view);
  sight_.show(view);
  return view;
}

void WatchedCrew::freshen(View& view) const {
  const std::optional<BrokerStatus>& broker = view.own->done.broker;
  for (WorkerStatus& worker : view.status.workers) {
    if (!is_own(*view.own, worker.name)) continue;
    worker.process = WorkerProcess::runs;
    if (!broker) continue;
    worker.broker = broker;
    worker.is_cut_off = broker->state == BrokerState::down;
  }
}

}  // namespace stela::tool

#include "worker/dashboard.hpp"

#include "worker/dashboard_layout.hpp"
#include "worker/looks.hpp"
#include "worker/screen.hpp"

#include <unistd.h>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

/// How often it is drawn while nobody types.
constexpr auto refresh = 500ms;

}  // namespace

bool can_show_dashboard(const Output& out) {
  return out.can_draw() && isatty(STDIN_FILENO) == 1;
}

void show_dashboard(Watched& watched, bool color) {
  Screen screen{color};
  View view;
  Looks looks;
  while (!watched.has_ended()) {
    if (!looks.held) view = watched.look();
    const Frame frame = lay_out(view, looks, screen.size());
    looks.scroll = frame.scroll;
    screen.draw(frame.lines);
    const int key = screen.wait_for_key(watched.is_ending() ? 50ms : refresh);
    if (key != 0 && take_key(looks, key, frame.page)) watched.leave();
  }
}

View WatchedCrew::look() {
  StatusWatch::Seen seen = watch_.look(refresh - 50ms);
  trend_.add(seen.status);
  View view{.command = options_.program + " outbox work",
            .program = options_.program,
            .database = options_.database,
            .own = OwnWork{.worker = options_.worker,
                           .broker_url = options_.broker_url,
                           .window = options_.window,
                           .done = statistics_.look(std::chrono::steady_clock::now())},
            .status = std::move(seen.status),
            .pace = trend_.pace(),
            .processes = std::move(seen.processes),
            .store_problem = std::move(seen.problem)};
  view.own->state = state_of(view.own->done, view.status, crew_.stop_requested());
  for (const RecentError& trouble : view.own->done.troubles) {
    view.own->trouble_streams.push_back(stream_of(trouble.sequence));
  }
  return view;
}

std::string WatchedCrew::stream_of(std::int64_t sequence) {
  if (sequence == 0) return {};
  if (streams_.size() > 4 * Statistics::kept_troubles) streams_.clear();
  const auto [at, is_new] = streams_.try_emplace(sequence);
  if (is_new) at->second = watch_.stream_of(sequence);
  return at->second;
}

}  // namespace stela::tool

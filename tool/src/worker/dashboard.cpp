#include "worker/dashboard.hpp"

#include "worker/screen.hpp"

#include <map>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

/// How often it is drawn while nobody types.
constexpr auto refresh = 500ms;

class Dashboard {
 public:
  Dashboard(Crew& crew, Statistics& statistics, StatusWatch& watch, const DashboardOptions& options)
      : crew_{crew},
        statistics_{statistics},
        watch_{watch},
        options_{options},
        screen_{options.color} {}

  void run() {
    while (!crew_.has_ended()) {
      if (!looks_.held) look();
      screen_.draw(lay_out(view_, looks_, screen_.size()));
      if (const int key = screen_.wait_for_key(crew_.stop_requested() ? 50ms : refresh); key != 0) {
        take(key);
      }
    }
  }

 private:
  void look() {
    const Steady now = std::chrono::steady_clock::now();
    StatusWatch::Seen seen = watch_.look(refresh - 50ms);
    view_ = {.database = options_.database,
             .broker_url = options_.broker_url,
             .worker = options_.worker,
             .window = options_.window,
             .next_refresh = refresh,
             .done = statistics_.look(now),
             .status = std::move(seen.status),
             .store_problem = std::move(seen.problem)};
    view_.state = state_of(view_.done, view_.status, crew_.stop_requested());
    for (const Trouble& trouble : view_.done.troubles) {
      view_.trouble_streams.push_back(stream_of(trouble.sequence));
    }
  }

  std::string stream_of(std::int64_t sequence) {
    if (sequence == 0) return {};
    if (streams_.size() > 4 * Statistics::kept_troubles) streams_.clear();
    const auto [at, is_new] = streams_.try_emplace(sequence);
    if (is_new) at->second = watch_.stream_of(sequence);
    return at->second;
  }

  void take(int key) {
    if (looks_.typing) return type(key);
    switch (key) {
      case 'q':
        crew_.request_stop();
        looks_.held = false;
        break;
      case 'p':
        looks_.held = !looks_.held;
        break;
      case '?':
        looks_.help = !looks_.help;
        break;
      case '/':
        looks_.typing = true;
        looks_.filter.clear();
        break;
      case key_escape:
        looks_.help = false;
        looks_.filter.clear();
        break;
      default:
        break;
    }
  }

  void type(int key) {
    if (key == key_escape) looks_.filter.clear();
    if (key == key_escape || key == '\n' || key == '\r') {
      looks_.typing = false;
    } else if (key == key_backspace) {
      if (!looks_.filter.empty()) looks_.filter.pop_back();
    } else if (key >= ' ' && key < key_backspace && looks_.filter.size() < 64) {
      looks_.filter += static_cast<char>(key);
    }
  }

  Crew& crew_;
  Statistics& statistics_;
  StatusWatch& watch_;
  const DashboardOptions& options_;
  Screen screen_;
  View view_;
  Looks looks_;
  std::map<std::int64_t, std::string> streams_;
};

}  // namespace

void show_dashboard(Crew& crew, Statistics& statistics, StatusWatch& watch,
                    const DashboardOptions& options) {
  Dashboard{crew, statistics, watch, options}.run();
}

}  // namespace stela::tool

#include <stela/eventstore/sqlite.hpp>
#include <stela/projections/operations.hpp>
#include <stela/projections/timers.hpp>
#include <stela/projections_testing/process_scenario.hpp>

#include <limits>
#include <utility>

namespace stela::testing::detail {
namespace {

constexpr int all_timers = std::numeric_limits<int>::max();

std::string render_timer(const TimerStatus& timer) {
  return timer.name.key + ": " + timer.name.kind + " v" + std::to_string(timer.version) + ' ' +
         timer.payload + " at " + to_string(timer.due_at);
}

std::string list_timers(const std::vector<std::string>& lines) {
  if (lines.empty()) return "  (none)\n";
  std::string text;
  for (const std::string& line : lines) text += "  " + line + '\n';
  return text;
}

}  // namespace

ProcessBench::ProcessBench()
    : store{sqlite::open_in_memory({.clock = &clock, .keys = &keys})}, projections{store} {}

void ProcessBench::catch_up() {
  if (!runner_) runner_.emplace(projections);
  runner_->run_once();
  recorded_.clear();
  for (const StoredEvent& event : store.read_all({.from = GlobalSequence{mark_.value() + 1}})) {
    recorded_.push_back(render_stored(event, &keys));
  }
  error_ = error();
}

void ProcessBench::run(GlobalSequence mark) {
  mark_ = mark;
  catch_up();
}

void ProcessBench::pass(std::chrono::microseconds time) {
  TimerOperations timers{store};
  const Timestamp end = clock.now() + time;
  mark_ = store.last_sequence();
  for (;;) {
    const auto next = timers.list({.state = TimerState::pending, .limit = 1});
    // A timer held by a parked event keeps its due time.
    if (next.empty() || next.front().due_at > end || next.front().due_at <= clock.now()) break;
    clock.advance(next.front().due_at - clock.now());
    catch_up();
  }
  clock.advance(end - clock.now());
  catch_up();
}

std::string ProcessBench::error() {
  for (const TimerStatus& timer : TimerOperations{store}.list({.limit = all_timers})) {
    if (!timer.error.empty()) return timer.error;
  }
  for (const ProcessStatus& process : TimerOperations{store}.processes()) {
    for (const ParkedEvent& event : ProjectionOperations{store}.parked(process.name)) {
      return event.error;
    }
  }
  return {};
}

void ProcessBench::expect_events(const std::vector<std::string>& expected) const {
  if (!error_.empty()) fail("expected no exception, got " + error_);
  compare_events(expected, recorded_);
}

void ProcessBench::expect_failure(std::string_view message) const {
  if (error_.find(message) != std::string::npos && !error_.empty()) return;
  fail("expected a handler to throw '" + std::string{message} + "', " +
       (error_.empty() ? "but none threw" : "got " + error_));
}

void ProcessBench::expect_timers(const std::vector<std::string>& expected) {
  std::vector<std::string> actual;
  for (const TimerStatus& timer : TimerOperations{store}.list({.limit = all_timers})) {
    actual.push_back(render_timer(timer));
  }
  if (expected == actual) return;
  fail("expected the timers\n" + list_timers(expected) + "but these are set\n" +
       list_timers(actual));
}

}  // namespace stela::testing::detail

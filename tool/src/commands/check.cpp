#include "commands/check.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "session.hpp"

#include <stela/framework/codec/json_writer.hpp>

#include <algorithm>
#include <array>

namespace stela::tool {
namespace {

/// As monitoring systems have it.
enum State : int { ok = 0, warning = 1, critical = 2, unknown = 3 };

constexpr const char* name_of(State state) {
  constexpr std::array names{"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  return names[static_cast<std::size_t>(state)];
}

struct Measure {
  std::string_view name;
  double value = 0;
  std::optional<double> warning = {};
  std::optional<double> critical = {};
  std::string_view unit = {};
  /// The value must not be below the limit, rather than above it.
  bool is_least = false;

  bool is_beyond(const std::optional<double>& limit) const {
    return limit && (is_least ? value < *limit : value > *limit);
  }
  const std::optional<double>& broken_limit() const {
    return is_beyond(critical) ? critical : warning;
  }
  State state() const {
    return is_beyond(critical) ? State::critical : is_beyond(warning) ? State::warning : ok;
  }
};

// What holds unless it is said otherwise.
constexpr std::chrono::seconds warning_lag{60};
constexpr std::chrono::seconds critical_lag{300};
constexpr double warning_parked = 0;
constexpr double warning_pending = 10'000;
constexpr double critical_pending = 100'000;

std::string number(double value) {
  std::string text;
  json::append_double(text, value);
  return text;
}

/// The limits that were given, or hold by default.
class Limits {
 public:
  explicit Limits(const Arguments& arguments) : arguments_{arguments} {}

  double seconds(std::string_view option, std::chrono::seconds standard) const {
    const auto text = arguments_.text(option);
    if (!text) return static_cast<double>(standard.count());
    const auto parsed = parse_duration(*text);
    if (!parsed) throw Misuse{not_a_duration(option, *text)};
    return static_cast<double>(parsed->count()) / 1e3;
  }

  std::optional<double> count(std::string_view option, std::optional<double> standard) const {
    const auto value = arguments_.integer(option, {0, largest});
    return value ? std::optional{static_cast<double>(*value)} : standard;
  }

 private:
  const Arguments& arguments_;
};

double living_workers(const OutboxStatus& status) {
  return static_cast<double>(
      std::count_if(status.workers.begin(), status.workers.end(),
                    [](const WorkerStatus& worker) { return worker.is_alive; }));
}

std::vector<Measure> measures_of(const OutboxStatus& status, const Arguments& arguments) {
  const Limits limits{arguments};
  const double lag = status.lag ? static_cast<double>(status.lag->count()) / 1e6 : 0;
  const std::int64_t waiting = waiting_in(status);
  // Nobody has to be there for nothing.
  const std::optional<double> wanted = limits.count("--min-workers", 1);
  return {{.name = "lag",
           .value = lag,
           .warning = limits.seconds("--warn-lag", warning_lag),
           .critical = limits.seconds("--max-lag", critical_lag),
           .unit = "s"},
          {.name = "parked",
           .value = static_cast<double>(status.parked),
           .warning = limits.count("--warn-parked", warning_parked),
           .critical = limits.count("--max-parked", {})},
          {.name = "pending",
           .value = static_cast<double>(waiting),
           .warning = limits.count("--warn-pending", warning_pending),
           .critical = limits.count("--max-pending", critical_pending)},
          {.name = "lost",
           .value = static_cast<double>(std::max<std::int64_t>(status.lost, status.losses)),
           .critical = 0.0},
          {.name = "stopped", .value = static_cast<double>(status.stopped), .critical = 0.0},
          {.name = "workers",
           .value = living_workers(status),
           .critical = waiting > 0 ? wanted : std::nullopt,
           .is_least = true}};
}

State state_of(std::span<const Measure> measures) {
  State worst = ok;
  for (const Measure& measure : measures) worst = std::max(worst, measure.state());
  return worst;
}

std::string problems_of(std::span<const Measure> measures) {
  std::string text;
  for (const Measure& measure : measures) {
    if (measure.state() == ok) continue;
    text.append(text.empty() ? "" : ", ").append(measure.name).append(" is ");
    text.append(number(measure.value)).append(measure.unit);
    text.append(measure.is_least ? ", fewer than " : ", more than ");
    text.append(number(*measure.broken_limit())).append(measure.unit);
  }
  return text;
}

/// As a plugin's performance data has it: "10" alerts above ten, "1:" below one.
std::string range(const Measure& measure, const std::optional<double>& limit) {
  if (!limit) return {};
  return number(*limit) + (measure.is_least ? ":" : "");
}

void print_nagios(Output& out, State state, const std::string& text,
                  std::span<const Measure> measures) {
  std::string line = std::string{"STELA OUTBOX "} + name_of(state) + " - " + text;
  if (!measures.empty()) line += " |";
  for (const Measure& measure : measures) {
    line.append(" ").append(measure.name).append("=").append(number(measure.value));
    line.append(measure.unit).append(";").append(range(measure, measure.warning));
    line.append(";").append(range(measure, measure.critical));
  }
  out.line(line);
}

void print_json(Output& out, State state, const std::string& text,
                std::span<const Measure> measures) {
  std::string object_text;
  json::ObjectWriter object{object_text};
  object.add("state", name_of(state)).add("message", text);
  for (const Measure& measure : measures) object.add(measure.name, measure.value);
  object.close();
  out.json(object_text);
}

void print_prometheus(Output& out, State state, std::span<const Measure> measures) {
  out.line("# HELP stela_outbox_check_state 0 fine, 1 warning, 2 critical, 3 unknown.");
  out.line("# TYPE stela_outbox_check_state gauge");
  out.line("stela_outbox_check_state " + std::to_string(int{state}));
  for (const Measure& measure : measures) {
    std::string name{"stela_outbox_check_"};
    name.append(measure.name).append(measure.unit == "s" ? "_seconds" : "");
    out.line("# HELP " + name + " As `stela outbox check` saw it.");
    out.line("# TYPE " + name + " gauge");
    out.line(name + " " + number(measure.value));
  }
}

void print_check(Invocation& call, State state, const std::string& text,
                 std::span<const Measure> measures) {
  const std::string format =
      call.arguments.text("--format").value_or(call.out.is_json() ? "json" : "text");
  if (format == "nagios") return print_nagios(call.out, state, text, measures);
  if (format == "json") return print_json(call.out, state, text, measures);
  if (format == "prometheus") return print_prometheus(call.out, state, measures);
  if (format != "text") throw Misuse{"--format is text, nagios, json or prometheus"};
  call.out.line(std::string{name_of(state)} + ": " + text);
}

int check(Invocation& call) {
  // The limits are read first: a mistake in them is wrong usage, not a state of the outbox.
  measures_of({}, call.arguments);
  OutboxStatus status;
  try {
    Session session{call, {.only_reads = true}};
    status = session.operations().status();
  } catch (const Misuse&) {
    throw;
  } catch (const std::runtime_error& e) {
    print_check(call, unknown, in_one_line(e.what()), {});
    return unknown;
  }
  const auto measures = measures_of(status, call.arguments);
  const std::string problems = problems_of(measures);
  std::string text = problems;
  if (text.empty()) {
    text = in_digits(waiting_in(status)) + " waiting, lag " + lag_in_words(status) + ", " +
           in_digits(status.parked) + " parked";
  }
  const State state = state_of(measures);
  print_check(call, state, text, measures);
  return state;
}

}  // namespace

Command check_command() {
  return {
      .path = "outbox check",
      .summary = "says whether the outbox is well, for monitoring systems",
      .about =
          "Exit codes as Nagios has them: 0 fine, 1 warning, 2 critical, 3 unknown. A stopped "
          "partition is critical, and so are losses at the broker that nobody has looked into, and "
          "messages that wait while no worker is alive. What "
          "is beyond a --warn limit is a warning, what is beyond a --max limit is critical.",
      .options = {db_option,
                  {"--warn-lag", "TIME", "the oldest message may wait so long (default 60s)"},
                  {"--max-lag", "TIME", "the oldest message may wait so long (default 5m)"},
                  {"--warn-parked", "N", "so many may be parked (default 0)"},
                  {"--max-parked", "N", "so many may be parked (default: no limit)"},
                  {"--warn-pending", "N", "so many may wait (default 10000)"},
                  {"--max-pending", "N", "so many may wait (default 100000)"},
                  {"--min-workers", "N",
                   "so many must be alive while messages wait (default 1; 0 where cron runs them)"},
                  {"--format", "NAME", "text, nagios, json or prometheus"}},
      .examples = {{"every minute", "outbox check --max-lag 10s --max-parked 0 --format nagios"}},
      .run = check};
}

}  // namespace stela::tool

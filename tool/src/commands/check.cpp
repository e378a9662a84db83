#include "commands/check.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "session.hpp"

#include <stela/framework/codec/json_writer.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

/// As monitoring systems have it.
enum State : int { ok = 0, critical = 2, unknown = 3 };

constexpr const char* name_of(State state) {
  return state == ok ? "OK" : state == critical ? "CRITICAL" : "UNKNOWN";
}

struct Measure {
  std::string_view name;
  double value;
  std::optional<double> limit;
  std::string_view unit;

  bool is_over() const { return limit && value > *limit; }
};

std::string number(double value) {
  std::string text;
  json::append_double(text, value);
  return text;
}

std::vector<Measure> measures_of(const OutboxStatus& status, const Arguments& arguments) {
  std::optional<double> lag;
  if (const auto text = arguments.text("--max-lag")) {
    const auto parsed = parse_duration(*text);
    if (!parsed) throw Misuse{not_a_duration("--max-lag", *text)};
    lag = static_cast<double>(parsed->count()) / 1e3;
  }
  const auto most = [&](std::string_view option) -> std::optional<double> {
    const auto value = arguments.integer(option, {0, largest});
    return value ? std::optional{static_cast<double>(*value)} : std::nullopt;
  };
  return {{"lag", status.lag ? static_cast<double>(status.lag->count()) / 1e6 : 0, lag, "s"},
          {"parked", static_cast<double>(status.parked), most("--max-parked"), ""},
          {"pending", static_cast<double>(waiting_in(status)), most("--max-pending"), ""},
          {"stopped", static_cast<double>(status.stopped), 0.0, ""}};
}

std::string problems_of(std::span<const Measure> measures) {
  std::string text;
  for (const Measure& measure : measures) {
    if (!measure.is_over()) continue;
    text.append(text.empty() ? "" : ", ").append(measure.name).append(" is ");
    text.append(number(measure.value)).append(measure.unit).append(", more than ");
    text.append(number(*measure.limit)).append(measure.unit);
  }
  return text;
}

void print_nagios(Output& out, State state, const std::string& text,
                  std::span<const Measure> measures) {
  std::string line = std::string{"STELA OUTBOX "} + name_of(state) + " - " + text;
  if (!measures.empty()) line += " |";
  for (const Measure& measure : measures) {
    line.append(" ").append(measure.name).append("=").append(number(measure.value));
    line.append(measure.unit).append(";;");
    if (measure.limit) line += number(*measure.limit);
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
  out.line("# HELP stela_outbox_check_state 0 fine, 2 critical, 3 unknown.");
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
    Session session{call};
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
  const State state = problems.empty() ? ok : critical;
  print_check(call, state, text, measures);
  return state;
}

}  // namespace

Command check_command() {
  return {
      .path = "outbox check",
      .summary = "says whether the outbox is well, for monitoring systems",
      .about =
          "Exit codes as Nagios has them: 0 fine, 2 critical, 3 unknown. A partition that "
          "is stopped is always critical.",
      .options = {db_option,
                  {"--max-lag", "TIME", "the oldest message may wait so long"},
                  {"--max-parked", "N", "so many may be parked"},
                  {"--max-pending", "N", "so many may wait"},
                  {"--format", "NAME", "text, nagios, json or prometheus"}},
      .examples = {{"every minute", "outbox check --max-lag 10s --max-parked 0 --format nagios"}},
      .run = check};
}

}  // namespace stela::tool

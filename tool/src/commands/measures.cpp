#include "commands/measures.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "description/description.hpp"

#include <stela/framework/error.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <exception>
#include <span>

namespace stela::tool {
namespace {

constexpr const char* name_of(State state) {
  constexpr std::array names{"OK", "WARNING", "CRITICAL", "UNKNOWN"};
  return names[static_cast<std::size_t>(state)];
}

std::string in_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(c));
  return text;
}

/// Plain digits, as required of plugins; seconds to the millisecond.
std::string number(double value) {
  std::array<char, 512> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::fixed, std::nearbyint(value) == value ? 0 : 3);
  return {text.data(), end.ptr};
}

/// In the format of performance data: "10" alerts above ten, "1:" below one.
std::string range(const Measure& measure, const std::optional<double>& limit) {
  if (!limit) return {};
  return number(*limit) + (measure.is_least ? ":" : "");
}

void print_nagios(Output& out, std::string_view subject, State state, const std::string& text,
                  std::span<const Measure> measures) {
  std::string line{"STELA "};
  for (const char c : subject) line += static_cast<char>(std::toupper(c));
  line.append(" ").append(name_of(state)).append(" - ").append(text);
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
  JsonFields object{object_text};
  object.add({{"state", in_lower_case(name_of(state))}, {"message", text}});
  for (const Measure& measure : measures) {
    const std::string name{measure.name};
    const std::string key = measure.unit == "s" ? name + "_s" : name;
    object.add({{key, measure.is_absent ? Value{} : Value{measure.value}}});
    if (measure.is_lower_bound) object.add({{name + "_is_lower_bound", *measure.is_lower_bound}});
  }
  object.close();
  out.json(object_text);
}

void print_prometheus(Output& out, std::string_view subject, State state,
                      std::span<const Measure> measures) {
  const std::string prefix = "stela_" + std::string{subject} + "_check_";
  out.line("# HELP " + prefix + "state 0 fine, 1 warning, 2 critical, 3 unknown.");
  out.line("# TYPE " + prefix + "state gauge");
  out.line(prefix + "state " + std::to_string(int{state}));
  for (const Measure& measure : measures) {
    std::string name = prefix;
    name.append(measure.name).append(measure.unit == "s" ? "_seconds" : "");
    out.line("# HELP " + name + " As `stela " + std::string{subject} + " check` saw it" +
             (measure.is_lower_bound.value_or(false) ? ", at least." : "."));
    out.line("# TYPE " + name + " gauge");
    out.line(name + " " + number(measure.value));
  }
}

State state_of(std::span<const Measure> measures) {
  State worst = ok;
  for (const Measure& measure : measures) worst = std::max(worst, measure.state());
  return worst;
}

/// "lag is 70s, more than 60s; 22 messages parked": worst first. Empty if all is well.
std::string problems_of(std::vector<Measure> measures) {
  std::stable_sort(measures.begin(), measures.end(),
                   [](const Measure& a, const Measure& b) { return a.state() > b.state(); });
  std::string text;
  for (const Measure& measure : measures) {
    if (measure.state() == ok) continue;
    text.append(text.empty() ? "" : "; ");
    if (!measure.problem.empty()) {
      text += in_one_line(measure.problem);
      continue;
    }
    text.append(measure.name)
        .append(" is ")
        .append(measure.is_lower_bound.value_or(false) ? "at least " : "");
    text.append(number(measure.value)).append(measure.unit);
    text.append(measure.is_least ? ", fewer than " : ", more than ");
    text.append(number(*measure.broken_limit())).append(measure.unit);
  }
  return text;
}

std::string format_of(const Invocation& call) {
  return call.arguments.text("--format").value_or(call.out.is_json() ? "json" : "text");
}

void require_format(const Invocation& call) {
  constexpr std::array<std::string_view, 4> known{"text", "nagios", "json", "prometheus"};
  if (std::find(known.begin(), known.end(), format_of(call)) != known.end()) return;
  throw Misuse{"--format is text, nagios, json or prometheus"};
}

void print_check(Invocation& call, State state, const std::string& text,
                 std::span<const Measure> measures) {
  const std::string_view subject = call.command.checks;
  const std::string format = format_of(call);
  if (format == "nagios") return print_nagios(call.out, subject, state, text, measures);
  if (format == "json") return print_json(call.out, state, text, measures);
  if (format == "prometheus") return print_prometheus(call.out, subject, state, measures);
  call.out.line(std::string{name_of(state)} + ": " + text);
}

/// If the state can't be printed, the caller doesn't know it, so it is UNKNOWN.
int told(Invocation& call, State state) try {
  call.out.flush();
  return state;
} catch (const Exit& e) {
  call.out.error("failed", call.app.name + ": " + e.what());
  return unknown;
}

}  // namespace

double Limits::seconds(std::string_view option, std::chrono::seconds standard) const {
  const auto text = arguments_.text(option);
  if (!text) return static_cast<double>(standard.count());
  const auto parsed = parse_duration(*text);
  if (!parsed) throw Misuse{not_a_duration(option, *text)};
  return static_cast<double>(parsed->count()) / 1e3;
}

std::optional<double> Limits::count(std::string_view option, std::optional<double> standard,
                                    std::int64_t most) const {
  const auto value = arguments_.integer(option, {0, most});
  return value ? std::optional{static_cast<double>(*value)} : standard;
}

Measure measure_writing(const DatabasePlace& place) {
  const auto problem = place.find_write_problem();
  const bool is_found = problem && !problem->is_of_this_user;
  return {.name = "unwritable",
          .value = is_found ? 1.0 : 0.0,
          .critical = 0.0,
          .problem = is_found ? "the database " + problem->what : std::string{}};
}

Limit limit_of(const std::vector<Measure>& measures, std::string_view name) {
  for (const Measure& measure : measures) {
    if (measure.name == name) return {measure.warning, measure.critical};
  }
  return {};
}

void explain(std::vector<Measure>& measures, const std::vector<Finding>& findings) {
  for (Measure& measure : measures) {
    if (measure.state() == ok) continue;
    int others = -1;
    for (const Finding& finding : findings) {
      if (std::find(measure.codes.begin(), measure.codes.end(), finding.code) ==
          measure.codes.end()) {
        continue;
      }
      if (++others == 0) measure.problem = finding.sentence;
    }
    if (others > 0) measure.problem += " (and " + std::to_string(others) + " more)";
  }
}

int run_check(Invocation& call, FunctionRef<Checked()> look) {
  Checked found;
  try {
    require_format(call);
    found = look();
  } catch (const UsageError& e) {
    return say_unknown(call, e.what());
  } catch (const Error& e) {
    print_check(call, critical, in_one_line(e.what()), {});
    return told(call, critical);
  } catch (const std::exception& e) {
    return say_unknown(call, e.what());
  }
  const State state = state_of(found.measures);
  print_check(call, state, state == ok ? found.summary : problems_of(found.measures),
              found.measures);
  return told(call, state);
}

int say_unknown(Invocation& call, const std::string& why) {
  print_check(call, unknown, in_one_line(why), {});
  return told(call, unknown);
}

}  // namespace stela::tool

// The measures of a check: compared with limits, and printed in the formats of monitoring systems.
#pragma once

#include "cli/arguments.hpp"
#include "cli/command.hpp"
#include "cli/invocation.hpp"
#include "commands/event_selection.hpp"
#include "database_place.hpp"
#include "diagnosis/diagnose.hpp"

#include <stela/framework/detail/function_ref.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

/// The states of monitoring systems.
enum State : int { ok = 0, warning = 1, critical = 2, unknown = 3 };

struct Measure {
  std::string_view name;
  double value = 0;
  std::optional<double> warning = {};
  std::optional<double> critical = {};
  std::string_view unit = {};
  /// The limit is a minimum instead of a maximum.
  bool is_least = false;
  /// The value may be higher. Unset for measures that are always exact.
  std::optional<bool> is_lower_bound = {};
  /// There is nothing to measure.
  bool is_absent = false;
  /// The message for a broken limit, if the figures don't explain it.
  std::string problem = {};
  /// The findings that explain it.
  std::vector<Code> codes = {};

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

/// The given limits, or the defaults.
class Limits {
 public:
  explicit Limits(const Arguments& arguments) : arguments_{arguments} {}

  double seconds(std::string_view option, std::chrono::seconds standard) const;
  std::optional<double> count(std::string_view option, std::optional<double> standard,
                              std::int64_t most = largest) const;

 private:
  const Arguments& arguments_;
};

/// Critical if the database can't be written to. But not if only this user can't, because
/// monitoring needs no permission.
Measure measure_writing(const DatabasePlace& place);

/// The limits of the measure with this name.
Limit limit_of(const std::vector<Measure>& measures, std::string_view name);
/// Replaces the message of each broken limit by the sentences of its findings.
void explain(std::vector<Measure>& measures, const std::vector<Finding>& findings);

/// The result of a check.
struct Checked {
  std::vector<Measure> measures = {};
  /// Printed if all is well.
  std::string summary = {};
};

/// Prints the result of `look` in the requested format. A database that doesn't answer is critical;
/// any other exception is UNKNOWN. Returns the state, which is the exit code.
int run_check(Invocation& call, FunctionRef<Checked()> look);
/// Prints that the state is UNKNOWN, and why. Returns the state.
int say_unknown(Invocation& call, const std::string& why);

constexpr Option format_option{"--format", "NAME", "text, nagios, json or prometheus",
                               "",         false,  "text|nagios|json|prometheus"};

}  // namespace stela::tool

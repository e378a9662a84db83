// What a check measures, compares with limits and prints as monitoring systems want it.
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

/// As monitoring systems have it.
enum State : int { ok = 0, warning = 1, critical = 2, unknown = 3 };

struct Measure {
  std::string_view name;
  double value = 0;
  std::optional<double> warning = {};
  std::optional<double> critical = {};
  std::string_view unit = {};
  /// The value must not be below the limit, rather than above it.
  bool is_least = false;
  /// The value may be more; unset where it never is.
  std::optional<bool> is_lower_bound = {};
  /// There is nothing to measure.
  bool is_absent = false;
  /// What is said where a limit is broken, if figures don't tell.
  std::string problem = {};
  /// The findings that say it.
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

/// The limits that were given, or hold by default.
class Limits {
 public:
  explicit Limits(const Arguments& arguments) : arguments_{arguments} {}

  double seconds(std::string_view option, std::chrono::seconds standard) const;
  std::optional<double> count(std::string_view option, std::optional<double> standard,
                              std::int64_t most = largest) const;

 private:
  const Arguments& arguments_;
};

/// Critical if nothing can be written to the database, unless that is so for this user alone:
/// whoever only watches needs no permission.
Measure measure_writing(const DatabasePlace& place);

/// The limits of the measure with this name.
Limit limit_of(const std::vector<Measure>& measures, std::string_view name);
/// Measures whose limit is broken say what the findings say.
void explain(std::vector<Measure>& measures, const std::vector<Finding>& findings);

/// What a check has found.
struct Checked {
  std::vector<Measure> measures = {};
  /// Said if all is well.
  std::string summary = {};
};

/// Prints what `look` finds in the format that was asked for. A database that doesn't answer is
/// critical; what else it throws is UNKNOWN.
/// Returns the state, which is the exit code.
int run_check(Invocation& call, FunctionRef<Checked()> look);
/// Prints that the state is UNKNOWN, and why; returns it.
int say_unknown(Invocation& call, const std::string& why);

constexpr Option format_option{"--format", "NAME", "text, nagios, json or prometheus",
                               "",         false,  "text|nagios|json|prometheus"};

}  // namespace stela::tool

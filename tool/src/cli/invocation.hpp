// One call of a command: what was typed, what is configured, where output goes.
#pragma once

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/settings.hpp"
#include "database_place.hpp"

#include <stela/tool/app.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela::tool {

/// Threads: one at a time.
class Invocation {
 public:
  Invocation(const App& the_app, std::span<const Command> all_known, const Command& called,
             const Arguments& given, Output& output)
      : app{the_app}, commands{all_known}, command{called}, arguments{given}, out{output} {}

  const App& app;
  const std::span<const Command> commands;
  const Command& command;
  const Arguments& arguments;
  Output& out;

  /// Read when it is first asked for.
  const Settings& settings();
  /// The database. Misuse if nobody said which one.
  DatabasePlace place();

  /// True if `question` is answered with yes, or --yes was given. Misuse where nobody can be asked.
  bool confirm(std::string_view question);

 private:
  std::optional<Settings> settings_;
};

}  // namespace stela::tool

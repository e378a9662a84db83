// One call of a command: what was typed, what is configured, where output goes.
#pragma once

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/settings.hpp"
#include "database_place.hpp"

#include <stela/tool/app.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace stela::tool {

/// Threads: one at a time.
class Invocation {
 public:
  /// Whether it may open a database to write there, where it can.
  enum class Access : std::uint8_t { writes, only_reads };

  Invocation(const App& the_app, std::span<const Command> all_known, const Command& called,
             const Arguments& given, Output& output, Access allowed = Access::writes)
      : app{the_app},
        commands{all_known},
        command{called},
        arguments{given},
        out{output},
        access{allowed} {}

  const App& app;
  const std::span<const Command> commands;
  const Command& command;
  const Arguments& arguments;
  Output& out;
  const Access access;

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

// One call of a command: what was typed, what is configured, where output goes.
#pragma once

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/settings.hpp"
#include "database_place.hpp"

#include <stela/tool/app.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

namespace stela::tool {

/// Whoever has a command run from elsewhere than a terminal.
struct Principal {
  /// As the logs of operators have it.
  std::string who;
  /// Whether the question is answered with yes. May wait for it.
  std::function<bool(std::string_view question)> agrees;
  /// Asks the command to end at the next safe point.
  std::stop_source stop = {};
};

/// Threads: one at a time.
class Invocation {
 public:
  /// Whether it may open a database to write there, where it can.
  enum class Access : std::uint8_t { writes, only_reads };

  Invocation(const App& the_app, std::span<const Command> all_known, const Command& called,
             const Arguments& given, Output& output, Access allowed = Access::writes,
             const Principal* caller = nullptr)
      : app{the_app},
        commands{all_known},
        command{called},
        arguments{given},
        out{output},
        access{allowed},
        principal{caller} {}

  const App& app;
  const std::span<const Command> commands;
  const Command& command;
  const Arguments& arguments;
  Output& out;
  const Access access;
  /// Null: somebody at a terminal, or a script.
  const Principal* const principal;

  /// Read when it is first asked for.
  const Settings& settings();
  /// The database. Misuse if nobody said which one.
  DatabasePlace place();

  /// True if `question` is answered with yes, or --yes was given. Misuse where nobody can be asked.
  bool confirm(std::string_view question);
  /// As confirm, of what a terminal isn't asked about.
  bool confirm_elsewhere(std::string_view question);
  /// Whether whoever runs it wants it to end.
  bool is_stopped() const { return principal != nullptr && principal->stop.stop_requested(); }
  /// Who is noted in the logs of operators; empty: the user and host of the process.
  std::string who() const { return principal == nullptr ? std::string{} : principal->who; }
  /// The same, and of a process its user and host: "jane@shop".
  std::string operator_name() const;

 private:
  std::optional<Settings> settings_;
};

}  // namespace stela::tool

// One call of a command: its arguments, its configuration, its output.
#pragma once

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/settings.hpp"
#include "database_place.hpp"

#include <stela/eventstore/tenants.hpp>
#include <stela/tool/app.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

namespace stela::tool {

/// The caller of a command that isn't run from a terminal.
struct Principal {
  /// The name in the operators' logs.
  std::string who;
  /// True if the answer to the question is yes. May wait for it.
  std::function<bool(std::string_view question)> agrees;
  /// Asks the command to end at the next safe point.
  std::stop_source stop = {};
};

/// Threads: one at a time.
class Invocation {
 public:
  /// Whether it may open a database for writing.
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
  /// Null for a terminal or a script.
  const Principal* const principal;

  /// Read on first use.
  const Settings& settings();
  /// The tenant whose database it is; nothing if none was named.
  const std::optional<Tenant>& tenant() {
    settings();
    return tenant_;
  }
  /// The database. Misuse if none was given.
  DatabasePlace place();

  /// True if `question` is answered with yes, or --yes was given. Misuse if nobody can be asked.
  bool confirm(std::string_view question);
  /// As `confirm`, for questions that a terminal isn't asked.
  bool confirm_elsewhere(std::string_view question);
  /// True if the caller wants it to end.
  bool is_stopped() const { return principal != nullptr && principal->stop.stop_requested(); }
  /// The name for the operators' logs. Empty: the user and host of the process.
  std::string who() const { return principal == nullptr ? std::string{} : principal->who; }
  /// As `who`, or the user and host of the process: "jane@shop".
  std::string operator_name() const;

 private:
  std::optional<Settings> settings_;
  std::optional<Tenant> tenant_;
};

}  // namespace stela::tool

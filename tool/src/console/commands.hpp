// The tool's commands, run by the console on its stores.
#pragma once

#include "cli/arguments.hpp"
#include "cli/invocation.hpp"

#include <stela/eventstore/detail/journal.hpp>
#include <stela/tool/app.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::tool {

/// A database, and its name on the pages.
struct ServedStore {
  std::string name;
  std::string place;
  /// For a tenant's store. A place on a server says then which role is used.
  std::string tenant = {};
  /// The place for commands that change something. Empty: none may.
  std::string acting_place = {};
  /// For a store made from an export: its file, and the time of its last event, which serves as the
  /// present. Empty for a database.
  std::string exported_in = {};
  std::string exported_at = {};
};

/// "outbox retry" with its operands and options.
struct CommandCall {
  std::string_view command;
  std::vector<std::string> operands = {};
  /// Without their dashes. A switch has no value, or "1" or "true".
  std::vector<std::pair<std::string, std::string>> options = {};
};

/// The name in requests: "event" for the operand EVENT.
std::string name_of(const Operand& operand);

/// Threads: any.
class ConsoleCommands {
 public:
  /// `common` are options for every command that has them: --nats, --set.
  ConsoleCommands(const App& app, std::span<const Command> commands, const Arguments& common)
      : app_{app}, commands_{commands}, common_{common} {}

  /// False for options that the console sets itself, and for those that may run without limit.
  static bool is_offered(const Option& option);

  const Command& find(std::string_view name) const;
  /// The command line as a person would type it.
  std::string line(const CommandCall& call) const;
  /// As `line`, without texts that may be from payloads.
  std::string line_without_texts(CommandCall call) const;
  /// Misuse if operands or options are missing, superfluous or unknown. Callers can't choose the
  /// database, broker or files, nor whether the command asks.
  Arguments arguments(const ServedStore& store, const CommandCall& call) const;
  int run(const Command& command, const Arguments& arguments, Output& out,
          Invocation::Access access, const Principal* principal = nullptr) const;
  /// Notes in the journal of the acting place what people decided about a command. Error if it
  /// can't.
  void note(const ServedStore& store, const JournalEntry& entry) const;

 private:
  const App& app_;
  std::span<const Command> commands_;
  const Arguments& common_;
};

}  // namespace stela::tool

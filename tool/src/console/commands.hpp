// The tool's commands, as the console has them run on its stores.
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

/// A database, and what its pages call it.
struct ServedStore {
  std::string name;
  std::string place;
  /// The place for those who change something; empty: nobody may.
  std::string acting_place = {};
  /// The export that it was made from, and its last event's time, which is its present; empty: it
  /// is a database.
  std::string exported_in = {};
  std::string exported_at = {};
};

/// "outbox retry", with what was given to it.
struct CommandCall {
  std::string_view command;
  std::vector<std::string> operands = {};
  /// Without their dashes; a switch has no value, or says "1" or "true".
  std::vector<std::pair<std::string, std::string>> options = {};
};

/// As programs call it: "event" is the operand EVENT.
std::string name_of(const Operand& operand);

/// Threads: any.
class ConsoleCommands {
 public:
  /// `common` are options for every command that knows them: --nats, --set.
  ConsoleCommands(const App& app, std::span<const Command> commands, const Arguments& common)
      : app_{app}, commands_{commands}, common_{common} {}

  /// Not what the console says itself, and not what may take as long as it likes.
  static bool is_offered(const Option& option);

  const Command& find(std::string_view name) const;
  /// As it would be typed.
  std::string line(const CommandCall& call) const;
  /// The same, without what was looked for in payloads.
  std::string line_without_texts(CommandCall call) const;
  /// Misuse if the command takes fewer, more or other words and options. Which database, broker or
  /// file it is about isn't for a caller to say, nor whether it asks.
  Arguments arguments(const ServedStore& store, const CommandCall& call) const;
  int run(const Command& command, const Arguments& arguments, Output& out,
          Invocation::Access access, const Principal* principal = nullptr) const;
  /// Notes what people decided about a command where they act. Error if it can't.
  void note(const ServedStore& store, const JournalEntry& entry) const;

 private:
  const App& app_;
  std::span<const Command> commands_;
  const Arguments& common_;
};

}  // namespace stela::tool

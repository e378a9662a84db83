#include "console/commands.hpp"

#include "cli/command.hpp"
#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "console/redaction.hpp"
#include "console/routes.hpp"
#include "run_command.hpp"
#include "store_session.hpp"

#include <algorithm>
#include <utility>

namespace stela::tool {
namespace {

const Option* find_option(std::span<const Option> options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options.end() ? nullptr : &*found;
}

/// An option of the console applies only to commands that have it for the same setting: --stream is
/// the broker's stream for one command, and an event's stream for another.
void add_common(const Arguments& common, const Command& command, Arguments& arguments) {
  common.for_each([&](std::string_view name, const std::string& value) {
    if (name == db_option.name || name == "--tenant") return;
    const Option* option = find_option(common_options(), name);
    if (option != nullptr) return arguments.add(option->name, value);
    option = find_option(command.options, name);
    if (option != nullptr && !option->setting.empty()) arguments.add(option->name, value);
  });
}

void add_store(const ServedStore& store, Arguments& arguments) {
  if (!store.tenant.empty()) arguments.add("--tenant", store.tenant);
  if (store.tenant.empty() || is_on_server(store.place)) {
    arguments.add(db_option.name, store.place);
  }
}

void add_options(const CommandCall& call, const Command& command, Arguments& arguments) {
  for (const auto& [name, value] : call.options) {
    const Option* known = find_option(command.options, "--" + name);
    if (known == nullptr || !ConsoleCommands::is_offered(*known)) {
      throw Misuse{"'" + std::string{command.path} + "' has no option '" + in_one_line(name) +
                   "' here"};
    }
    if (!known->repeats && arguments.has(known->name)) {
      throw Misuse{std::string{known->name} + " is given twice"};
    }
    const bool is_switch = known->value.empty();
    if (is_switch && !value.empty() && value != "1" && value != "true") {
      throw Misuse{std::string{known->name} + " is on or left out; it takes no value"};
    }
    arguments.add(known->name, is_switch ? std::string{} : value);
  }
}

void add_operands(const CommandCall& call, const Command& command, Arguments& arguments) {
  const auto needed = std::count_if(command.operands.begin(), command.operands.end(),
                                    [](const Operand& operand) { return operand.required; });
  const bool any_number = !command.operands.empty() && command.operands.back().repeats;
  const bool are_too_many = !any_number && call.operands.size() > command.operands.size();
  if (are_too_many || std::cmp_less(call.operands.size(), needed)) {
    throw Misuse{"'" + std::string{command.path} + "' takes " +
                 counted(static_cast<std::int64_t>(command.operands.size()), "word")};
  }
  for (const std::string& operand : call.operands) arguments.add_operand(operand);
}

}  // namespace

bool ConsoleCommands::is_offered(const Option& option) {
  constexpr std::string_view not_offered[] = {"--watch", "--format", "--yes", "--wait",
                                              "--look-further"};
  return option.setting.empty() && std::find(std::begin(not_offered), std::end(not_offered),
                                             option.name) == std::end(not_offered);
}

std::string name_of(const Operand& operand) {
  std::string name{operand.name};
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return name;
}

std::string ConsoleCommands::line(const CommandCall& call) const {
  const Command& command = find(call.command);
  std::string line{call.command};
  for (const auto& [name, value] : call.options) {
    const Option* option = find_option(command.options, "--" + name);
    line.append(" --").append(in_one_line(name));
    if (option != nullptr && option->value.empty()) continue;
    line.append("=").append(in_shell(in_one_line(value)));
  }
  for (const std::string& operand : call.operands) line += ' ' + in_shell(in_one_line(operand));
  return line;
}

std::string ConsoleCommands::line_without_texts(CommandCall call) const {
  for (auto& [name, value] : call.options) {
    if (has_private_text("--" + name)) value = not_shown;
  }
  return line(call);
}

const Command& ConsoleCommands::find(std::string_view name) const {
  return *std::find_if(commands_.begin(), commands_.end(),
                       [&](const Command& command) { return command.path == name; });
}

Arguments ConsoleCommands::arguments(const ServedStore& store, const CommandCall& call) const {
  const Command& command = find(call.command);
  Arguments arguments;
  add_options(call, command, arguments);
  add_operands(call, command, arguments);
  add_store(store, arguments);
  add_common(common_, command, arguments);
  return arguments;
}

int ConsoleCommands::run(const Command& command, const Arguments& arguments, Output& out,
                         Invocation::Access access, const Principal* principal) const {
  return run_command(app_, commands_, command, arguments, out, access, principal);
}

void ConsoleCommands::note(const ServedStore& store, const JournalEntry& entry) const {
  const Command& command = find("findings ack");
  Arguments arguments;
  add_store(store, arguments);
  add_common(common_, command, arguments);
  Output::Kept kept;
  Output out{{.kept = &kept}};
  Invocation call{app_, commands_, command, arguments, out};
  Journal{StoreSession{call}.store()}.note(entry);
}

}  // namespace stela::tool

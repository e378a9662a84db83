// Help, completion and the manual, all generated from the table of commands.
#pragma once

#include "cli/command.hpp"
#include "cli/output.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

struct HelpContext {
  /// The program's name.
  std::string_view program;
  std::span<const Command> commands;
};

void print_overview(const HelpContext& context, Output& out);
/// The commands below `group`: "outbox".
void print_group(const HelpContext& context, std::string_view group, Output& out);
void print_command(const HelpContext& context, const Command& command, Output& out);

/// "stela outbox retry [SEQUENCE] [options]".
std::string usage_of(std::string_view program, const Command& command);

/// A completion script for the shell: bash, zsh or fish. Misuse for any other.
std::string completion_script(const HelpContext& context, std::string_view shell);

/// The manual page, in troff.
std::string manual_page(const HelpContext& context, std::string_view version);
/// docs/reference/cli.md.
std::string reference_page(const HelpContext& context);
/// docs/reference/configuration.md.
std::string configuration_page();

}  // namespace stela::tool

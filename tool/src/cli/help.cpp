#include "cli/help.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace stela::tool {
namespace {

std::string described(const Option& option) {
  std::string text{option.name};
  if (!option.value.empty()) text.append(" ").append(option.value);
  return text;
}

void print_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, Output& out) {
  std::size_t width = 0;
  for (const auto& [name, text] : pairs) width = std::max(width, width_of(name));
  for (const auto& [name, text] : pairs) {
    out.line("  " + name + std::string(width - width_of(name) + 2, ' ') + text);
  }
}

void print_examples(const HelpContext& context, std::span<const Example> examples, Output& out) {
  if (examples.empty()) return;
  out.heading("Examples");
  for (const Example& example : examples) {
    if (!example.what.empty()) out.line(std::string{"  # "}.append(example.what));
    out.line(std::string{"  "}.append(context.program).append(" ").append(example.command));
  }
  out.line();
}

constexpr Example first_steps[] = {
    {"make a database, and an outbox in it", "migrate --db shop.db"},
    {"", "outbox enable --db shop.db"},
    {"append an event to publish",
     "events append --db shop.db --stream order-1 --type order.placed --publish --data '{}'"},
    {"publish pending messages to NATS",
     "outbox work --db shop.db --nats nats://127.0.0.1:4222 --ensure-stream"},
    {"show pending and stopped messages, and why", "outbox status --db shop.db"},
};

struct ExitMeaning {
  ExitCode code;
  std::string_view meaning;
};

constexpr std::array exit_meanings{
    ExitMeaning{done,
                "done; also if a list is empty, and if Ctrl-C or SIGTERM ended a command that "
                "has no end of its own: outbox work, outbox top, --watch, events tail"},
    ExitMeaning{failed, "failed: the text says why"},
    ExitMeaning{usage, "wrong usage: of the command line, or of something in the wrong state"},
    ExitMeaning{not_found,
                "not found: the database (on a server, Stela's tables in it), its outbox, or a "
                "stream, event, message, partition, projector, process, timer, tag, consumer "
                "or snapshot that the command names"},
    ExitMeaning{cannot_connect, "the broker can't be reached"},
    ExitMeaning{conflict, "of the appends of `events append --stdin`, one or more conflicted"},
    ExitMeaning{interrupted, "interrupted before its end, by Ctrl-C for example"},
    ExitMeaning{reader_gone,
                "stdout was closed before the end, by `head` for example; nothing is said"},
};

}  // namespace

std::string usage_of(std::string_view program, const Command& command) {
  std::string text{program};
  text.append(" ").append(command.path);
  for (const Operand& operand : command.operands) {
    text.append(operand.required ? " " : " [").append(operand.name);
    if (operand.repeats) text += "…";
    if (!operand.required) text += ']';
  }
  return text.append(" [options]");
}

void print_overview(const HelpContext& context, Output& out) {
  out.line(std::string{context.program}.append(
      " - event sourcing with an integrated transactional outbox"));
  out.line();
  out.line(std::string{"Usage: "}.append(context.program).append(" COMMAND [options]"));
  out.line();
  print_examples(context, first_steps, out);
  out.heading("Commands");
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Command& command : context.commands) {
    pairs.emplace_back(command.path, command.summary);
  }
  print_pairs(pairs, out);
  out.line();
  out.line(std::string{"'"}
               .append(context.program)
               .append(" COMMAND --help' has examples and options; exit codes: 0 done, 1 failed,"));
  out.line("2 wrong usage, 3 not found, 4 can't connect, 5 an append conflicted, 130 interrupted,");
  out.line("141 stdout was closed.");
}

void print_group(const HelpContext& context, std::string_view group, Output& out) {
  out.heading(std::string{context.program}.append(" ").append(group));
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Command& command : context.commands) {
    if (command.path.substr(0, group.size()) == group) {
      pairs.emplace_back(command.path, command.summary);
    }
  }
  print_pairs(pairs, out);
}

void print_command(const HelpContext& context, const Command& command, Output& out) {
  out.line(std::string{context.program} + " " + std::string{command.path} + " - " +
           std::string{command.summary});
  out.line();
  out.line("Usage: " + usage_of(context.program, command));
  out.line();
  if (!command.about.empty()) {
    out.line(command.about);
    out.line();
  }
  print_examples(context, command.examples, out);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Operand& operand : command.operands) {
    pairs.emplace_back(operand.name, operand.summary);
  }
  for (const Option& option : command.options) {
    pairs.emplace_back(described(option), option.summary);
  }
  if (!pairs.empty()) {
    out.heading("Options");
    print_pairs(pairs, out);
    out.line();
  }
  pairs.clear();
  for (const Option& option : common_options()) {
    pairs.emplace_back(described(option), option.summary);
  }
  out.heading("Options of every command");
  print_pairs(pairs, out);
}

std::string reference_page(const HelpContext& context) {
  std::string text{
      "# The commands\n\nMade from the tool's own table by `stela manual --markdown`; a test "
      "compares "
      "it.\nEvery command also understands:\n\n"};
  const auto list = [&](std::span<const Option> options) {
    for (const Option& option : options) {
      text.append("- `")
          .append(described(option))
          .append("`: ")
          .append(option.summary)
          .append("\n");
    }
  };
  list(common_options());
  text += "\n| exit code | meaning |\n|---|---|\n";
  for (const auto& [code, meaning] : exit_meanings) {
    text.append("| ").append(std::to_string(code)).append(" | ").append(meaning).append(" |\n");
  }
  text +=
      "\n`outbox check` and `inbox check` have those of monitoring systems: 0 fine, 1 warning, 2 "
      "critical, 3 unknown.\n";
  for (const Command& command : context.commands) {
    text.append("\n## ").append(command.path).append("\n\n`");
    text.append(usage_of(context.program, command)).append("`: ");
    text.append(command.summary).append(".\n");
    if (!command.about.empty()) text.append("\n").append(command.about).append("\n");
    if (!command.operands.empty() || !command.options.empty()) text += '\n';
    for (const Operand& operand : command.operands) {
      text.append("- `").append(operand.name).append("`: ").append(operand.summary).append("\n");
    }
    list(command.options);
    if (command.examples.empty()) continue;
    text += "\n```sh\n";
    for (const Example& example : command.examples) {
      text.append("# ").append(example.what).append("\n");
      text.append(context.program).append(" ").append(example.command).append("\n");
    }
    text += "```\n";
  }
  return text;
}

std::string manual_page(const HelpContext& context, std::string_view version) {
  const auto escaped = [](std::string_view plain) {
    std::string text;
    for (const char c : plain) {
      if (c == '\\') {
        text += "\\e";
      } else if (c == '-') {
        text += "\\-";
      } else {
        if ((c == '.' || c == '\'') && (text.empty() || text.back() == '\n')) text += "\\&";
        text += c;
      }
    }
    return text;
  };
  const std::string program{context.program};
  std::string upper;
  for (const char c : program) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  std::string page =
      ".TH " + upper + " 1 \"\" \"Stela " + std::string{version} + "\"\n.SH NAME\n" +
      escaped(program) +
      " \\- event sourcing with an integrated transactional outbox\n.SH SYNOPSIS\n.B " +
      escaped(program) + "\n.I COMMAND\n[options]\n.SH COMMANDS\n";
  const auto list = [&](std::span<const Option> options) {
    for (const Option& option : options) {
      page += ".TP\n.B " + escaped(described(option)) + "\n" + escaped(option.summary) + "\n";
    }
  };
  for (const Command& command : context.commands) {
    page += ".SS " + escaped(usage_of(program, command)) + "\n" + escaped(command.summary) + ".\n";
    if (!command.about.empty()) page += ".PP\n" + escaped(command.about) + "\n";
    for (const Operand& operand : command.operands) {
      page += ".TP\n.I " + escaped(operand.name) + "\n" + escaped(operand.summary) + "\n";
    }
    list(command.options);
    for (const Example& example : command.examples) {
      page += ".PP\n" + escaped(example.what) + ":\n.PP\n.RS\n.nf\n" +
              escaped(program + " " + std::string{example.command}) + "\n.fi\n.RE\n";
    }
  }
  page += ".SH OPTIONS OF EVERY COMMAND\n";
  list(common_options());
  page += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_meanings) {
    page += ".TP\n.B " + std::to_string(code) + "\n" + escaped(meaning) + "\n";
  }
  return page;
}

}  // namespace stela::tool

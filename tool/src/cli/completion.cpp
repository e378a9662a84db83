// Completion scripts, and the page of settings.
#include "cli/exit.hpp"
#include "cli/help.hpp"
#include "cli/settings.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace stela::tool {
namespace {

/// The possible values of an option, as in Option::values.
std::string values_of(const Option& option) {
  if (option.name == "--set") {
    std::string keys;
    for (const ConfiguredSetting& setting : all_settings()) {
      keys.append(keys.empty() ? "" : "|").append(setting.key).append("=");
    }
    return keys;
  }
  if (!option.values.empty()) return std::string{option.values};
  for (const ConfiguredSetting& setting : all_settings()) {
    if (!option.setting.empty() && setting.key == option.setting) {
      return std::string{setting.choices};
    }
  }
  return {};
}

/// The words for a shell. For values from the database, a call that lists them.
std::string words_of(std::string_view program, std::string values, std::string_view database) {
  if (values.starts_with('@')) {
    return std::string{"$("}
               .append(program)
               .append(" completion --values ")
               .append(values.substr(1)) +
           std::string{database} + " 2>/dev/null)";
  }
  std::replace(values.begin(), values.end(), '|', ' ');
  return values;
}

constexpr std::string_view bash_database = " ${db:+--db \"$db\"}";

/// The continuations of each command prefix: words, or the options of a complete command.
std::map<std::string, std::set<std::string>> continuations(const HelpContext& context) {
  std::map<std::string, std::set<std::string>> next;
  for (const Command& command : context.commands) {
    std::string path;
    std::string_view rest = command.path;
    while (!rest.empty()) {
      const std::string word{rest.substr(0, rest.find(' '))};
      next[path].insert(word);
      path.append(path.empty() ? "" : " ").append(word);
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
    for (const Option& option : command.options) next[path].insert(std::string{option.name});
    if (!command.operands.empty() && !command.operands.front().values.empty()) {
      next[path].insert(
          words_of(context.program, std::string{command.operands.front().values}, bash_database));
    }
    for (const Option& option : common_options()) next[path].insert(std::string{option.name});
    next[path].insert("--help");
  }
  return next;
}

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

std::string identifier(std::string_view program) {
  std::string text{"_"};
  for (const char c : program) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    text += plain ? c : '_';
  }
  return text + "_complete";
}

/// The cases in which the previous word is an option with known values.
std::string bash_values(const HelpContext& context) {
  std::string text;
  const auto add = [&](const std::string& pattern, const Option& option) {
    const std::string values = values_of(option);
    if (values.empty()) return;
    text += "    " + pattern + std::string{option.name} + "\") COMPREPLY=($(compgen -W \"" +
            words_of(context.program, values, bash_database) + "\" -- \"$word\")); return ;;\n";
  };
  for (const Option& option : common_options()) add("*\" ", option);
  for (const Command& command : context.commands) {
    for (const Option& option : command.options) {
      add("\"" + std::string{command.path} + "\"*\" ", option);
    }
  }
  return text;
}

/// For bash. zsh runs it through bashcompinit.
std::string bash_script(const HelpContext& context) {
  const std::string function = identifier(context.program);
  std::string text = function + "() {\n";
  text +=
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" path=\"\" db=\"\" next i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    [ \"${COMP_WORDS[i]}\" = --db ] && db=\"${COMP_WORDS[i+1]}\"\n"
      "  done\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"${COMP_WORDS[i]}\" in\n"
      "      -*) break ;;\n"
      "      *) path=\"${path:+$path }${COMP_WORDS[i]}\" ;;\n"
      "    esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case \"${COMP_WORDS[COMP_CWORD-1]}\" in\n"
      "    --db|--config) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
      "  esac\n"
      "  case \"$path ${COMP_WORDS[COMP_CWORD-1]}\" in\n" +
      bash_values(context) +
      "  esac\n"
      "  case \"$path\" in\n";
  for (const auto& [path, words] : continuations(context)) {
    text += "    \"" + path + "\") next=\"" + joined(words) + "\" ;;\n";
  }
  text +=
      "    *) return ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$next\" -- \"$word\"))\n"
      "}\n";
  return text + "complete -F " + function + " " + std::string{context.program} + "\n";
}

std::string quoted_for_fish(std::string_view text) {
  std::string out{"'"};
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

/// Completes a value as a file name unless its choices are known.
std::string fish_value(const HelpContext& context, const Option& option) {
  if (option.value.empty()) return {};
  const std::string values = values_of(option);
  if (values.empty()) return " -r -F";
  const std::string words = words_of(context.program, values, "");
  // Fish before 3.4 has no $(…).
  return " -x -a " + quoted_for_fish(words.starts_with('$') ? words.substr(1) : words);
}

std::string fish_script(const HelpContext& context) {
  const std::string program{context.program};
  const std::string begin = "complete -c " + program;
  std::string text = begin + " -f\n";
  std::set<std::string> groups;
  for (const Command& command : context.commands) {
    const std::string path{command.path};
    const std::size_t blank = path.rfind(' ');
    const std::string last = blank == std::string::npos ? path : path.substr(blank + 1);
    const std::string before = blank == std::string::npos ? "" : path.substr(0, blank);
    std::string when = before.empty() ? "__fish_use_subcommand"
                                      : "string match -q -- '" + program + " " + before +
                                            "' (string join ' ' (commandline -opc))";
    text += begin + " -n \"" + when + "\" -a " + last + " -d " + quoted_for_fish(command.summary) +
            "\n";
    if (!before.empty() && groups.insert(before).second && before.find(' ') == std::string::npos) {
      text += begin + " -n __fish_use_subcommand -a " + before + "\n";
    }
    for (const Option& option : command.options) {
      text += begin + " -n \"string match -q -- '" + program + " " + path +
              "*' (string join ' ' (commandline -opc))\" -l " + std::string{option.name.substr(2)} +
              fish_value(context, option) + " -d " + quoted_for_fish(option.summary) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const HelpContext& context, std::string_view shell) {
  if (shell == "bash") return bash_script(context);
  if (shell == "zsh") {
    return "#compdef " + std::string{context.program} +
           "\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(context);
  }
  if (shell == "fish") return fish_script(context);
  throw Misuse{"completion is there for bash, zsh and fish, not '" + in_one_line(shell) + "'"};
}

std::string configuration_page() {
  std::string text{R"(# Configuration

Made from the tool's own table by `stela manual --settings`; a test compares it.

A value comes from, the first that has one: a flag (`--set KEY=VALUE` sets any), a variable
of the environment, the file, the default. The file is what `--config` or `STELA_CONFIG` name,
else `stela.toml` in the working folder. In it a key is a name in a table: `outbox.lease_ttl` is
`lease_ttl` in `[outbox]`. A time is a number with its unit: `500ms`, `15s`, `2m`, `1h` or `7d`.
`stela config show` shows each value in effect, and where it comes from. An unknown key is an error.
A variable that looks like a mistyped one is refused; others that begin with `STELA_` may be other programs'.
Keep secrets in separate files, and name them in settings; a NATS URL with a password is refused, and PostgreSQL reads `~/.pgpass`.

The file belongs to you or to root, and nobody else may write it: it says which files are sent to
which broker. One that belongs to others is refused; name a copy of your own with `--config`, or do
without with `--config /dev/null`. If others may write it, `chmod go-w` helps. The file that a link leads
to counts. A secret's file that others may read is refused: its mode is 0600, or 0640 if root owns it.

| key | default | variable | what |
|---|---|---|---|
)"};
  for (const ConfiguredSetting& setting : all_settings()) {
    text.append("| `").append(setting.key).append("` | ");
    text.append(setting.standard.empty() ? "" : "`" + setting.standard + "`");
    text.append(" | `").append(setting.variable()).append("` | ").append(setting.summary);
    if (!setting.choices.empty()) {
      std::string choices{setting.choices};
      std::replace(choices.begin(), choices.end(), '|', ',');
      text.append(": ").append(choices);
    }
    text += " |\n";
  }
  return text;
}

}  // namespace stela::tool

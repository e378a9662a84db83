// config show, completion, version, manual: about the tool itself.
#include "cli/exit.hpp"
#include "cli/help.hpp"
#include "cli/invocation.hpp"

#include <stela/framework/codec/json_writer.hpp>
#include <stela/framework/version.hpp>

#include <sqlite3.h>

namespace stela::tool {
namespace {

int show_config(Invocation& call) {
  const Settings& settings = call.settings();
  Table table{{{"SETTING"}, {"VALUE"}, {"FROM"}}};
  std::string text;
  json::ObjectWriter object{text};
  for (const Setting& setting : all_settings()) {
    const Settings::Value& value = settings.value(setting.key);
    table.add({std::string{setting.key}, value.text, value.origin});
    std::string& member = object.key(setting.key);
    json::ObjectWriter{member}.add("value", value.text).add("from", value.origin).close();
  }
  object.close();
  if (call.out.is_json()) {
    call.out.json(text);
  } else {
    table.print(call.out);
  }
  return done;
}

int completion(Invocation& call) {
  call.out.line(
      completion_script({call.app.name, call.commands}, call.arguments.operands().front()));
  return done;
}

int show_version(Invocation& call) {
  if (call.out.is_json()) {
    std::string text;
    json::ObjectWriter object{text};
    object.add("stela", version()).add("sqlite", sqlite3_libversion());
    if (!call.app.version.empty()) object.add(call.app.name, call.app.version);
    object.close();
    call.out.json(text);
    return done;
  }
  std::string line = call.app.name;
  if (!call.app.version.empty()) line += " " + call.app.version + ", Stela";
  line.append(" ").append(version());
  call.out.line(line + " (SQLite " + sqlite3_libversion() + ")");
  return done;
}

int manual(Invocation& call) {
  const HelpContext context{call.app.name, call.commands};
  std::string page = call.arguments.has("--markdown")   ? reference_page(context)
                     : call.arguments.has("--settings") ? configuration_page()
                                                        : manual_page(context, version());
  page.pop_back();
  call.out.line(page);
  return done;
}

}  // namespace

std::vector<Command> self_commands() {
  return {
      {.path = "config show",
       .summary = "Show every setting and where its value comes from",
       .options = {db_option},
       .examples = {{"show the settings in effect", "config show"}},
       .run = show_config},
      {.path = "completion",
       .summary = "Print a shell completion script",
       .operands = {{"SHELL", "bash, zsh or fish"}},
       .examples = {{"for this bash session", "completion bash > /tmp/stela && . /tmp/stela"}},
       .run = completion},
      {.path = "manual",
       .summary = "Print the manual page",
       .options = {{"--markdown", "", "print the command reference as Markdown"},
                   {"--settings", "", "print the settings reference as Markdown"}},
       .examples = {{"open it", "manual | man -l -"}},
       .run = manual},
      {.path = "version",
       .summary = "Print the version",
       .examples = {{"for a bug report", "version --json"}},
       .run = show_version},
  };
}

}  // namespace stela::tool

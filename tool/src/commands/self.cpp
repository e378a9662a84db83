// config show, completion, version, manual: commands about the tool itself.
#include "broker.hpp"
#include "cli/exit.hpp"
#include "cli/help.hpp"
#include "cli/invocation.hpp"
#include "cli/text.hpp"
#include "description/description.hpp"
#include "diagnosis/finding.hpp"
#include "store_session.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/version.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/projections/operations.hpp>

#include <sqlite3.h>

#include <set>
#include <string>

namespace stela::tool {
namespace {

/// Hides a location that can't be parsed, because its password can't be found.
std::string shown_setting(std::string_view key, const std::string& value) try {
  if (key == "db" && is_on_server(value)) postgres::describe(value);
  if (key == "nats.url") nats::check(nats::PublisherOptions{.url = value});
  return without_passwords(value);
} catch (const UsageError&) {
  return "***";
}

struct ShownSetting {
  std::string key;
  std::string value;
  std::string origin;
};
constexpr Field<ShownSetting> setting_fields[] = {
    field<&ShownSetting::key>("setting"),
    field<&ShownSetting::value>("value"),
    field<&ShownSetting::origin>("from"),
};
constexpr Description<ShownSetting> shown_settings{setting_fields, {.table = "setting value from"}};

int show_config(Invocation& call) {
  const Settings& settings = call.settings();
  Listing listing{call.out, shown_settings};
  for (const ConfiguredSetting& setting : all_settings()) {
    const auto& [value, origin] = settings.value(setting.key);
    listing.add({setting.key, shown_setting(setting.key, value), origin});
  }
  listing.print();
  // Checks combinations of values, which needs no database.
  check(relay_options(settings));
  return done;
}

std::set<std::string> values_in_database(Invocation& call, std::string_view what) {
  StoreSession session{call, {.only_reads = true}};
  std::set<std::string> names;
  if (what == "partitions") {
    for (const auto& each : session.operations().status().partitions) names.insert(each.id.label());
  } else if (what == "projectors") {
    for (const auto& each : ProjectionOperations{session.store()}.status()) names.insert(each.name);
  } else {
    throw Misuse{"--values is partitions or projectors, not '" + in_one_line(what) + "'"};
  }
  return names;
}

int completion(Invocation& call) {
  if (const auto what = call.arguments.text("--values")) {
    for (const std::string& name : values_in_database(call, *what)) call.out.line(name);
    return done;
  }
  if (call.arguments.operands().empty()) throw Misuse{"which shell? Pass bash, zsh or fish"};
  call.out.line(
      completion_script({call.app.name, call.commands}, call.arguments.operands().front()));
  return done;
}

int show_version(Invocation& call) {
  const std::string& own = call.app.version;
  std::string line = call.app.name;
  if (!own.empty()) line += " " + own + ", Stela";
  line.append(" ").append(version()).append(" (SQLite ").append(sqlite3_libversion()).append(")");
  print_result(call.out,
               {{"stela", version()},
                {"sqlite", sqlite3_libversion()},
                {"program", call.app.name},
                {"program_version", own}},
               line);
  return done;
}

std::string findings_page() {
  std::string page =
      "# What can be wrong\n\n"
      "What `stela check`, `why`, `doctor`, the other checks, the dashboard and `/readyz` find, by "
      "its code. A code keeps its meaning; sentences may change. Options of a check, such as "
      "`--max-lag`, set other limits.\n\n"
      "Made from the tool's own table by `stela manual --findings`; a test compares it.\n\n"
      "| code | severity | meaning |\n|---|---|---|\n";
  for (const CodeFacts& facts : all_codes()) {
    page.append("| `").append(facts.word).append("` | ").append(word_of(facts.severity));
    page.append(" | ").append(facts.meaning).append(" |\n");
  }
  return page;
}

int manual(Invocation& call) {
  const HelpContext context{call.app.name, call.commands};
  std::string page = call.arguments.has("--markdown")   ? reference_page(context)
                     : call.arguments.has("--settings") ? configuration_page()
                     : call.arguments.has("--findings") ? findings_page()
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
       .operands = {{"SHELL", "bash, zsh or fish", false, false, "bash|zsh|fish"}},
       .options = {db_option,
                   {"--values", "WHAT", "for the scripts: list the partitions or projectors", "",
                    false, "partitions|projectors"}},
       .examples = {{"for this bash session", "completion bash > /tmp/stela && . /tmp/stela"}},
       .run = completion},
      {.path = "manual",
       .summary = "Print the manual page",
       .options = {{"--markdown", "", "print the command reference as Markdown"},
                   {"--settings", "", "print the settings reference as Markdown"},
                   {"--findings", "", "print the codes of what can be wrong as Markdown"}},
       .examples = {{"open it", "manual | man -l -"}},
       .run = manual},
      {.path = "version",
       .summary = "Print the version",
       .examples = {{"for a bug report", "version --json"}},
       .run = show_version},
  };
}

}  // namespace stela::tool

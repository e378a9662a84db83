#include <stela/framework/detail/not_found.hpp>
#include <stela/framework/error.hpp>
#include <stela/tool/run.hpp>

#include "cli/exit.hpp"
#include "cli/help.hpp"
#include "cli/invocation.hpp"
#include "cli/text.hpp"
#include "commands/measures.hpp"
#include "run_command.hpp"

#include <clocale>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>

namespace stela::tool {
namespace {

constexpr Option common[] = {
    {"--json", "", "print JSON, an object a line"},
    {"--config", "FILE", "the configuration file"},
    {"--set", "KEY=VALUE", "set anything of the configuration", "", true},
    {"--log", "FORMAT", "messages on stderr as text or json", "log"},
    {"--no-color", "", "no colours; as NO_COLOR does"},
    {"--no-input", "", "never ask"},
    {"--tenants", "REGISTRY", "the registry of tenants", "tenants"},
    {"--tenant", "NAME", "the tenant whose database it is, instead of --db", "tenant"},
};

ExitCode exit_code_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::usage:
      return usage;
    case ErrorCode::aggregate_not_found:
      return not_found;
    case ErrorCode::broker_failed:
      return cannot_connect;
    default:
      return failed;
  }
}

bool has_word(std::span<const char* const> words, const char* wanted) {
  for (const char* word : words) {
    if (std::strcmp(word, "--") == 0) return false;
    if (std::strcmp(word, wanted) == 0) return true;
  }
  return false;
}

/// Returns `done`. Wrong usage of a check has an exit code of its own.
int parse_words(const App& app, std::span<const Command> commands,
                std::span<const char* const> words, Parsed& parsed, Output& out) {
  try {
    parse(commands, words, parsed);
    return done;
  } catch (const Misuse& e) {
    if (parsed.command == nullptr || parsed.command->checks.empty()) throw;
    Invocation invocation{app, commands, *parsed.command, parsed.arguments, out};
    return say_unknown(invocation, e.what());
  }
}

int run_parsed(const App& app, std::span<const Command> commands, const Parsed& parsed,
               Output& out) {
  const HelpContext context{app.name, commands};
  if (parsed.command == nullptr) {
    if (parsed.group.empty()) {
      print_overview(context, out);
    } else {
      print_group(context, parsed.group, out);
    }
    return done;
  }
  if (parsed.wants_help) {
    print_command(context, *parsed.command, out);
    return done;
  }
  Invocation invocation{app, commands, *parsed.command, parsed.arguments, out};
  return parsed.command->run(invocation);
}

/// Runs `work` and turns exceptions into a sentence on stderr and an exit code.
template <class Work>
int guarded(const App& app, std::string_view command, Output& out, Work work) {
  const auto say = [&](std::string_view code, const std::string& text) {
    out.error(code, out.is_kept() ? text : app.name + ": " + text);
  };
  try {
    const int code = work();
    out.flush();
    return code;
  } catch (const Misuse& e) {
    std::string hint{app.name};
    if (!command.empty()) hint.append(" ").append(command);
    say("usage", e.what() + (out.is_json() ? std::string{} : "\nSee '" + hint + " --help'."));
    return usage;
  } catch (const ReaderGone&) {
    // `| head` has read enough.
    return reader_gone;
  } catch (const Exit& e) {
    constexpr const char* names[] = {"done", "failed", "usage", "not_found", "cannot_connect"};
    say(e.code() == interrupted ? "interrupted" : names[e.code()], e.what());
    return e.code();
  } catch (const NotFound& e) {
    say("not_found", e.what());
    return not_found;
  } catch (const Error& e) {
    say(to_string(e.code()), e.what());
    return exit_code_of(e);
  } catch (const std::bad_alloc&) {
    say("failed", "out of memory");
    return failed;
  } catch (const std::exception& e) {
    say("failed", e.what());
    return failed;
  }
}

}  // namespace

int run_command(const App& app, std::span<const Command> commands, const Command& command,
                const Arguments& arguments, Output& out, Invocation::Access access,
                const Principal* principal) {
  return guarded(app, command.path, out, [&] {
    Invocation invocation{app, commands, command, arguments, out, access, principal};
    return command.run(invocation);
  });
}

std::span<const Option> common_options() {
  return common;
}

std::vector<Command> all_commands() {
  std::vector<Command> all;
  const auto add = [&](std::vector<Command> commands) {
    all.insert(all.end(), commands.begin(), commands.end());
  };
  add(outbox_commands());
  add(partition_commands());
  add(event_commands());
  add(link_commands());
  add(stream_commands());
  add(snapshot_commands());
  add(tag_commands());
  add(append_id_commands());
  add(projection_commands());
  add(process_commands());
  add(timer_commands());
  add(inbox_commands());
  add(privacy_commands());
  add(diagnosis_commands());
  add(log_commands());
  add(findings_commands());
  add(tenant_commands());
  add(database_commands());
  add(transfer_commands());
  add(self_commands());
  return all;
}

int run(int argc, const char* const* argv, const App& app) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  // A closed reader must fail the write, not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  const std::span<const char* const> words{argv + (argc > 0 ? 1 : 0),
                                           static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)};
  Output out{{.json = has_word(words, "--json"), .no_color = has_word(words, "--no-color")}};
  std::vector<Command> commands;
  Parsed parsed;
  const int result = guarded(app, {}, out, [&] {
    commands = all_commands();
    if (words.size() == 1 && std::strcmp(words[0], "--version") == 0) {
      const char* version[] = {"version"};
      return parse_words(app, commands, version, parsed, out);
    }
    return parse_words(app, commands, words, parsed, out);
  });
  if (result != done) return result;
  return guarded(app, parsed.group, out, [&] { return run_parsed(app, commands, parsed, out); });
}

}  // namespace stela::tool

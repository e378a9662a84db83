// mcp: the console's answers for agents.
#include "console/mcp.hpp"
#include "cli/exit.hpp"
#include "store_session.hpp"

#include <iostream>
#include <string>

namespace stela::tool {
namespace {

int mcp(Invocation& call) {
  // Checks the place before the first request.
  call.place();
  std::string place = call.settings().text("db");
  if (place.empty()) place = call.app.database;
  const ConsoleCommands commands{call.app, call.commands, call.arguments};
  const auto& tenant = call.tenant();
  const ServedStore store{
      .name = "store", .place = place, .tenant = tenant ? tenant->name : std::string{}};
  const Mcp answers{commands,
                    store,
                    {.program = call.app.name, .gives_payloads = call.arguments.has("--payloads")}};
  for (std::string line; std::getline(std::cin, line);) {
    const std::string answer = answers.answer(line);
    if (answer.empty()) continue;
    call.out.json(answer);
    call.out.flush();
  }
  return done;
}

}  // namespace

Command mcp_command() {
  return {
      .path = "mcp",
      .summary = "Answer an agent's questions about a database",
      .about =
          "Speaks the Model Context Protocol on stdin and stdout: every command that only reads "
          "is a tool. Nothing is changed; of retries, discards and the like it says what they "
          "would do, and the command that a person runs. Payloads, states, metadata and headers "
          "are null unless --payloads is given; sentences may have words of an error.",
      .options = {db_option,
                  {"--nats", "URL", "also ask this broker", "nats.url"},
                  jetstream_option,
                  prefix_option,
                  {"--payloads", "", "give payloads, states, metadata and headers, too"}},
      .examples = {{"as an agent's configuration starts it", "mcp --db shop.db"}},
      .run = mcp};
}

}  // namespace stela::tool

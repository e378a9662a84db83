#include "console/openapi.hpp"

#include "cli/command.hpp"
#include "console/routes.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

constexpr std::string_view answer = R"({
"200":{"description":"What the command prints, and when it was asked","content":{"application/json":{"schema":
{"$ref":"#/components/schemas/Answer"}}}},
"default":{"description":"Why there is no answer","content":{"application/problem+json":{"schema":
{"$ref":"#/components/schemas/Problem"}}}}})";

constexpr std::string_view components = R"({"schemas":{
"Answer":{"type":"object","properties":{
"as_of":{"type":"object","properties":{"sequence":{"type":["integer","null"]},"at":{"type":"string","format":"date-time"}}},
"data":{"type":["array","object","null"],"description":"The command's own JSON"},
"more":{"type":["object","null"],"properties":{"option":{"type":"string"},"value":{"type":"string"},
"note":{"type":"string"},"look_further":{"type":"boolean"}}}}},
"Problem":{"type":"object","properties":{"type":{"type":"string"},"title":{"type":"string"},
"status":{"type":"integer"},"detail":{"type":"string"}}}},
"securitySchemes":{"token":{"type":"http","scheme":"bearer"}}})";

void add(std::string& list, std::string_view item) {
  list.append(list.empty() ? "" : ",").append(item);
}

std::string parameter(std::string_view name, std::string_view where, std::string_view summary,
                      bool is_required, bool is_switch) {
  std::string text;
  json::ObjectWriter{text}
      .add("name", name)
      .add("in", where)
      .add("description", summary)
      .add("required", is_required)
      .close();
  text.pop_back();
  return text + ",\"schema\":{\"type\":\"" + (is_switch ? "boolean" : "string") + "\"}}";
}

std::string operation(const Command& command, std::size_t operands) {
  std::string parameters = parameter("store", "path", "the name of the database", true, false);
  for (std::size_t i = 0; i < operands; ++i) {
    const Operand& operand = command.operands[i];
    add(parameters, parameter(name_of(operand), "path", operand.summary, true, false));
  }
  for (const Option& option : command.options) {
    if (!ConsoleCommands::is_offered(option)) continue;
    add(parameters,
        parameter(option.name.substr(2), "query", option.summary, false, option.value.empty()));
  }
  std::string text;
  json::ObjectWriter{text}.add("summary", command.summary).close();
  text.pop_back();
  return "{\"get\":" + text + ",\"parameters\":[" + parameters +
         "],\"responses\":" + std::string{answer} + "}}";
}

std::string paths_of(const Command& command) {
  std::string path = "/s/{store}/" + std::string{command.path};
  std::replace(path.begin(), path.end(), ' ', '/');
  std::string paths;
  for (std::size_t operands = 0; operands <= command.operands.size(); ++operands) {
    if (operands > 0) path += "/{" + name_of(command.operands[operands - 1]) + '}';
    const bool is_enough =
        operands == command.operands.size() || !command.operands[operands].required;
    if (!is_enough) continue;
    std::string entry;
    json::append_string(entry, path);
    add(paths, entry + ':' + operation(command, operands));
  }
  return paths;
}

}  // namespace

std::string openapi(const ConsoleCommands& commands, std::string_view version) {
  std::string paths;
  for (const Route& route : all_routes()) add(paths, paths_of(commands.find(route.command)));
  std::string info;
  json::ObjectWriter{info}.add("title", "The console of Stela").add("version", version).close();
  return "{\"openapi\":\"3.1.0\",\"info\":" + info +
         ",\"servers\":[{\"url\":\"/api/v1\"}],\"security\":[{\"token\":[]}],\"paths\":{" + paths +
         "},\"components\":" + std::string{components} + "}";
}

}  // namespace stela::tool

#include "cli/config_file.hpp"

#include "cli/exit.hpp"
#include "cli/input_file.hpp"
#include "cli/text.hpp"

#include <stela/framework/codec/json_writer.hpp>

// toml++ 3.3 doesn't see -std=c++20 on its own where extensions are off.
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace stela::tool {
namespace {

std::string written(const toml::node& node, const std::string& where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* number = node.as_floating_point()) {
    std::string text;
    json::append_double(text, number->get());
    return text;
  }
  throw Misuse{where + " is neither a text nor a number nor true or false"};
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& path,
             std::vector<ConfigEntry>& entries) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string{name.str()};
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, key + ".", path, entries);
      continue;
    }
    const int line = static_cast<int>(node.source().begin.line);
    const std::string where = path + ":" + std::to_string(line) + ": " + in_one_line(key);
    entries.push_back({key, written(node, where), line});
  }
}

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  std::ifstream file = open_to_read(path, "the configuration file " + path);
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  std::vector<ConfigEntry> entries;
  try {
    flatten(toml::parse(text, path), {}, path, entries);
  } catch (const toml::parse_error& e) {
    throw Misuse{path + ":" + std::to_string(e.source().begin.line) + ": " +
                 in_one_line(e.description())};
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return entries;
}

}  // namespace stela::tool

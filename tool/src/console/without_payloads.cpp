#include "console/without_payloads.hpp"

#include <stela/framework/codec/json_reader.hpp>
#include <stela/framework/codec/json_writer.hpp>

#include <algorithm>
#include <iterator>

namespace stela::tool {
namespace {

bool is_payload(std::string_view name) {
  constexpr std::string_view names[] = {"payload", "payload_base64", "headers", "metadata",
                                        "state"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// A word in lower case: the state of a message or a worker, and no aggregate's.
bool is_word(std::string_view json) {
  return json.starts_with('"') &&
         json.find_first_not_of("abcdefghijklmnopqrstuvwxyz_\"") == std::string_view::npos;
}

}  // namespace

std::string without_payloads(std::string_view json) {
  if (!json.starts_with('{') && !json.starts_with('[')) return std::string{json};
  json::Reader reader{json};
  std::string out;
  if (json.front() == '[') {
    reader.open_array();
    while (reader.next_element()) {
      out.append(out.empty() ? "" : ",").append(without_payloads(reader.get_raw()));
    }
    return '[' + out + ']';
  }
  reader.open_object();
  for (std::string name; reader.next_member(name);) {
    const std::string_view value = reader.get_raw();
    const bool is_left_out = is_payload(name) && !(name == "state" && is_word(value));
    out += out.empty() ? "" : ",";
    json::append_string(out, name);
    out.append(":").append(is_left_out ? "null" : without_payloads(value));
  }
  return '{' + out + '}';
}

}  // namespace stela::tool

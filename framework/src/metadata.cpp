#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>

namespace stela::metadata {
namespace {

constexpr std::size_t max_size = std::size_t{64} * 1024;
constexpr std::size_t max_correlation_size = 128;

[[noreturn]] void refuse(std::string_view what, std::string_view problem) {
  throw UsageError{"context: " + std::string{what} + ' ' + std::string{problem}};
}

void check_text(std::string_view what, std::string_view text) {
  if (json::is_plain(text)) return;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) refuse(what, "has a control character");
  }
  if (!json::is_utf8(text)) refuse(what, "isn't valid UTF-8");
}

/// A token of RFC 9110: the valid form of a header's name.
bool is_header_name(std::string_view name) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && marks.find(c) == std::string_view::npos) return false;
  }
  return !name.empty() && name.size() <= 128;
}

}  // namespace

void check(const Context& context) {
  check_text("the correlation id", context.correlation_id);
  if (context.correlation_id.size() > max_correlation_size) {
    refuse("the correlation id", "is longer than 128 bytes");
  }
  check_text("the actor", context.actor);
  check_text("traceparent", context.traceparent);
  check_text("tracestate", context.tracestate);
  std::size_t size = context.actor.size() + context.traceparent.size() + context.tracestate.size();
  for (const auto& [name, value] : context.headers) {
    if (!is_header_name(name)) {
      refuse("a header's name", "is 1 to 128 letters, digits and marks, without spaces or colons");
    }
    check_text("header '" + name + "'", value);
    size += name.size() + value.size();
  }
  if (size > max_size) refuse("actor, trace and headers together", "are larger than 64 KiB");
}

std::string encode(const Context& context) {
  std::string text;
  if (context.actor.empty() && context.traceparent.empty() && context.tracestate.empty() &&
      context.headers.empty()) {
    return text;
  }
  text.reserve(256);
  json::ObjectWriter object{text};
  if (!context.actor.empty()) object.add("actor", context.actor);
  if (!context.traceparent.empty()) object.add("traceparent", context.traceparent);
  if (!context.tracestate.empty()) object.add("tracestate", context.tracestate);
  if (!context.headers.empty()) {
    json::ObjectWriter headers{object.key("headers")};
    for (const auto& [name, value] : context.headers) headers.add(name, value);
    headers.close();
  }
  object.close();
  return text;
}

Context decode(std::string_view text) {
  Context context;
  if (text.empty()) return context;
  json::Reader reader{text};
  reader.open_object();
  if (reader.select("actor")) context.actor = reader.get_string();
  if (reader.select("traceparent")) context.traceparent = reader.get_string();
  if (reader.select("tracestate")) context.tracestate = reader.get_string();
  if (reader.select("headers")) {
    reader.open_object();
    std::string name;
    while (reader.next_member(name)) context.headers[name] = reader.get_string();
    reader.close();
  }
  reader.close();
  reader.finish();
  return context;
}

}  // namespace stela::metadata

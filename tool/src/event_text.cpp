#include "event_text.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <stela/framework/codec/json_reader.hpp>
#include <stela/framework/codec/json_writer.hpp>

#include <algorithm>

namespace stela::tool {
namespace {

/// DecodeError unless the text is one JSON value.
void check_json(std::string_view text) {
  json::Reader reader{text};
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const char first = begin == std::string_view::npos ? '\0' : text[begin];
  if (first == '{') {
    reader.open_object();
    reader.close();
  } else if (first == '[') {
    reader.open_array();
    reader.close();
  } else if (first == '"') {
    reader.get_string();
  } else {
    reader.get_raw();
  }
  reader.finish();
}

bool is_json(std::string_view text) try {
  check_json(text);
  return true;
} catch (const codec::DecodeError&) {
  return false;
}

std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    unsigned triple = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      triple = (triple << 8) | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += j <= count ? digits[(triple >> (18 - 6 * j)) & 63] : '=';
    }
  }
  return out;
}

}  // namespace

std::string minified(std::string_view text) {
  check_json(text);
  std::string out;
  out.reserve(text.size());
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      out += c;
      if (c == '\\') out += text[++i];
      in_text = c != '"';
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      out += c;
      in_text = c == '"';
    }
  }
  return out;
}

std::string to_json(const StoredEvent& event, Codec codec) {
  std::string out;
  json::ObjectWriter object{out};
  object.add("sequence", event.sequence.value())
      .add("stream", event.stream.name())
      .add("version", event.version.value())
      .add("id", event.id.to_string())
      .add("type", event.type())
      .add("schema_version", event.schema_version())
      .add("publishes", event.publishes())
      .add("recorded_at", to_string(event.recorded_at))
      .add("correlation", event.correlation_id());
  if (!event.causation_id.is_nil()) object.add("causation", event.causation_id.to_string());
  if (!event.metadata.empty()) {
    if (is_json(event.metadata)) object.key("metadata").append(minified(event.metadata));
  }
  if (codec == Codec::json && is_json(event.payload)) {
    object.key("payload").append(minified(event.payload));
  } else {
    object.add("payload_base64", base64(event.payload));
  }
  object.close();
  return out;
}

std::string payload_in_line(const StoredEvent& event, Codec codec) {
  if (codec == Codec::json) return in_one_line(event.payload);
  return in_bytes(static_cast<std::int64_t>(event.payload.size())) + " of binary";
}

Timestamp to_time(std::string_view text, std::string_view what) {
  if (const auto time = parse_timestamp(text)) return *time;
  if (const auto ago = parse_duration(text)) {
    return system_clock().now() - *ago;
  }
  throw Misuse{std::string{what} +
               " is a time such as 2026-11-21T11:34:00Z, or how long ago, with its unit: 15m; "
               "not '" +
               in_one_line(text) + "'"};
}

Moment to_moment(std::string_view text, std::string_view what) {
  const bool is_number = !text.empty() && std::all_of(text.begin(), text.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) return as_of(to_time(text, what));
  return at_version(
      StreamVersion{to_integer(text, what, {1, std::numeric_limits<std::int64_t>::max()})});
}

std::string short_time(Timestamp time) {
  std::string text = to_string(time).substr(0, 19);
  text[10] = ' ';
  return text;
}

}  // namespace stela::tool

#include "console/redaction.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace stela::tool {
namespace {

template <std::size_t count>
bool is_one_of(const std::string_view (&all)[count], std::string_view one) {
  return std::find(std::begin(all), std::end(all), one) != std::end(all);
}

bool is_payload(std::string_view key) {
  constexpr std::string_view keys[] = {"payload", "payload_base64", "headers", "metadata", "data"};
  return is_one_of(keys, key);
}

/// Keys of names and of the tool's own words. New keys are hidden until they are listed here.
bool names_a_thing(std::string_view key) {
  constexpr std::string_view keys[] = {"broker",
                                       "broker_stream",
                                       "category",
                                       "causation_id",
                                       "check",
                                       "code",
                                       "consumer",
                                       "correlation_id",
                                       "event_id",
                                       "failure_class",
                                       "fence",
                                       "filter",
                                       "fit",
                                       "follower",
                                       "from",
                                       "group",
                                       "handles",
                                       "host",
                                       "id",
                                       "key",
                                       "kind",
                                       "owner",
                                       "part",
                                       "partition",
                                       "partitioner",
                                       "partitions",
                                       "process",
                                       "program",
                                       "program_version",
                                       "projector",
                                       "reason",
                                       "recurrence",
                                       "remedy",
                                       "setting",
                                       "severity",
                                       "source",
                                       "state",
                                       "stopped",
                                       "store_id",
                                       "stream",
                                       "subject",
                                       "table",
                                       "timers",
                                       "type",
                                       "value",
                                       "what",
                                       "who",
                                       "worker"};
  return is_one_of(keys, key);
}

bool is_sentence(std::string_view key) {
  constexpr std::string_view keys[] = {"sentence", "message", "question", "notes", "known"};
  return is_one_of(keys, key);
}

/// Stela's own text after a colon. Any other text may quote an application, and is hidden until it
/// is listed here.
bool is_of_ours(std::string_view text) {
  constexpr std::string_view beginnings[] = {"import the same again",
                                             "it is a standby, which",
                                             "it is older than the outbox",
                                             "it was left behind",
                                             "its lease is over",
                                             "its stream begins at message",
                                             "its stream ends at",
                                             "its stream is ",
                                             "no answer from the broker",
                                             "no answer of its stream",
                                             "somebody purged it",
                                             "the lease of '",
                                             "the same again continues",
                                             "use --limit",
                                             "use the tool that is built into"};
  return std::any_of(std::begin(beginnings), std::end(beginnings),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

bool is_moment(std::string_view key) {
  return key == "at" || key.ends_with("_at");
}

/// True for a word in lower case: the state of a message or worker, not of an aggregate.
bool is_word(std::string_view json) {
  return json.starts_with('"') &&
         json.find_first_not_of("abcdefghijklmnopqrstuvwxyz_\"") == std::string_view::npos;
}

std::string unquoted(std::string_view json) {
  json::Reader reader{json};
  return std::string{reader.get_string()};
}

std::string in_quotes(std::string_view text) {
  std::string json;
  json::append_string(json, text);
  return json;
}

/// One star per character.
std::string masked(std::string_view text) {
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  });
  return std::string(static_cast<std::size_t>(characters), '*');
}

/// The same object or list, with each value replaced by what `change` returns.
template <class Change>
std::string with_values(std::string_view json, std::string_view key, const Change& change) {
  json::Reader reader{json};
  std::string out;
  if (json.front() == '[') {
    reader.open_array();
    while (reader.next_element()) {
      out.append(out.empty() ? "" : ",").append(change(key, reader.get_raw()));
    }
    return '[' + out + ']';
  }
  reader.open_object();
  for (std::string name; reader.next_member(name);) {
    out += out.empty() ? "" : ",";
    json::append_string(out, name);
    out.append(":").append(change(std::string_view{name}, reader.get_raw()));
  }
  return '{' + out + '}';
}

bool has_values(std::string_view json) {
  return json.starts_with('{') || json.starts_with('[');
}

}  // namespace

std::string Redaction::json(std::string_view json, bool has_states) const {
  return shown_ == Payloads::full ? std::string{json} : value({}, json, has_states);
}

std::string Redaction::value(std::string_view key, std::string_view json, bool has_states) const {
  if (json == "null") return "null";
  if (is_payload(key) || (key == "state" && (has_states || !is_word(json)))) return hidden(json);
  if (has_values(json)) {
    return with_values(json, key, [&](std::string_view name, std::string_view one) {
      return value(name, one, has_states);
    });
  }
  if (!hides_texts_ || !json.starts_with('"')) return std::string{json};
  if (names_a_thing(key) || is_moment(key)) return std::string{json};
  const std::string text = unquoted(json);
  if (key == "known" && !hides_sentences_) return in_quotes(shown_through(text, text.find(": ")));
  return in_quotes(is_sentence(key) ? sentence(text) : hidden_text(text));
}

std::string Redaction::sentence(std::string_view text) const {
  if (shown_ == Payloads::full || !hides_texts_) return std::string{text};
  if (hides_sentences_) return hidden_text(text);
  std::size_t colon = text.find(": ");
  while (colon != std::string_view::npos && is_of_ours(text.substr(colon + 2))) {
    colon = text.find(": ", colon + 2);
  }
  return shown_through(text, colon);
}

std::string Redaction::shown_through(std::string_view text, std::size_t colon) const {
  if (colon == std::string_view::npos) return std::string{text};
  return std::string{text.substr(0, colon + 2)} + hidden_text(text.substr(colon + 2));
}

std::string Redaction::hidden_text(std::string_view text) const {
  return shown_ == Payloads::masked ? masked(text) : std::string{not_shown};
}

std::string Redaction::hidden(std::string_view json) const {
  if (shown_ == Payloads::none || json == "null") return "null";
  if (json.starts_with('"')) return in_quotes(masked(unquoted(json)));
  if (json == "true" || json == "false") return "false";
  if (!has_values(json)) return "0";
  return with_values(json, {}, [&](std::string_view, std::string_view one) { return hidden(one); });
}

}  // namespace stela::tool

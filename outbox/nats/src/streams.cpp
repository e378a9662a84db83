#include "streams.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>

namespace stela::nats {
namespace {

// --- reading

std::string text_in(json::Reader& object, std::string_view name) {
  return object.select(name) ? std::string{object.get_string()} : std::string{};
}

std::int64_t number_in(json::Reader& object, std::string_view name) {
  return object.select(name) ? object.get_int64() : 0;
}

std::uint64_t count_in(json::Reader& object, std::string_view name) {
  return object.select(name) ? object.get_uint64() : 0;
}

bool flag_in(json::Reader& object, std::string_view name) {
  return object.select(name) && object.get_bool();
}

std::vector<std::string> texts_in(json::Reader& object, std::string_view name) {
  std::vector<std::string> texts;
  if (!object.select(name) || object.is_null()) return texts;
  object.open_array();
  while (object.next_element()) texts.emplace_back(object.get_string());
  object.close();
  return texts;
}

bool has(json::Reader& object, std::string_view name) {
  return object.select(name) && !object.is_null();
}

StreamConfig read_config(json::Reader& object) {
  return {.name = text_in(object, "name"),
          .subjects = texts_in(object, "subjects"),
          .retention = text_in(object, "retention"),
          .storage = text_in(object, "storage"),
          .discard = text_in(object, "discard"),
          .persist_mode = text_in(object, "persist_mode"),
          .max_messages = number_in(object, "max_msgs"),
          .max_bytes = number_in(object, "max_bytes"),
          .max_messages_per_subject = number_in(object, "max_msgs_per_subject"),
          .max_message_bytes = number_in(object, "max_msg_size"),
          .max_age = number_in(object, "max_age"),
          .no_ack = flag_in(object, "no_ack"),
          .sealed = flag_in(object, "sealed"),
          .has_sources = has(object, "mirror") || has(object, "sources")};
}

/// Enters the object `name`.
void open(json::Reader& object, std::string_view name) {
  if (!object.select(name)) object.fail("is missing");
  object.open_object();
}

// --- judging

std::string_view first_token(std::string_view subject) {
  return subject.substr(0, subject.find('.'));
}

/// Whether the stream takes at least some of the subjects: it may be meant for only some events,
/// and a message without a stream gets its own answer.
bool takes(const StreamConfig& config, const std::string& subjects) {
  return std::any_of(config.subjects.begin(), config.subjects.end(),
                     [&](const std::string& pattern) {
                       const std::string_view token = first_token(pattern);
                       return token == ">" || token == "*" || token == first_token(subjects);
                     });
}

std::string fenced_danger(const StreamConfig& config) {
  if (config.retention != "limits") {
    return "removes messages when they are consumed, and its messages can't be read back; "
           "make it with limits retention";
  }
  if (config.storage != "file") {
    return "keeps its messages in memory, and a server that is started again has lost what it "
           "acknowledged; make it with file storage";
  }
  if (!config.persist_mode.empty() && config.persist_mode != "default") {
    return "acknowledges messages that aren't in its file yet, and a server that dies loses them; "
           "make it with the default persist_mode";
  }
  const bool has_limit = config.max_messages > 0 || config.max_bytes > 0;
  if (config.discard != "new" && has_limit) {
    return "drops its oldest messages when it is full; set its discard policy to new";
  }
  if (config.max_messages_per_subject > 0) {
    return "keeps only some messages of each subject; remove max_msgs_per_subject";
  }
  if (config.has_sources) {
    return "takes messages from other streams, and the relay must be its only writer; give the "
           "relay a stream of its own";
  }
  return {};
}

}  // namespace

std::variant<StreamInfo, ApiError> read_stream_info(std::string_view reply) {
  json::Reader reader{reply};
  reader.open_object();
  if (auto error = error_in(reader)) return *std::move(error);
  StreamInfo info;
  open(reader, "config");
  info.config = read_config(reader);
  reader.close();
  open(reader, "state");
  info.messages = count_in(reader, "messages");
  info.bytes = count_in(reader, "bytes");
  info.first_sequence = count_in(reader, "first_seq");
  info.last_sequence = count_in(reader, "last_seq");
  reader.close();
  return info;
}

std::string creation_of(const std::string& name, const std::string& subjects,
                        const StreamOptions& options) {
  using std::chrono::nanoseconds;
  std::string text;
  json::ObjectWriter config{text};
  config.add("name", name);
  json::append_string(config.key("subjects") += '[', subjects);
  text += ']';
  config.add("storage", "file")
      .add("retention", "limits")
      .add("discard", "new")
      .add("num_replicas", options.replicas)
      .add("max_bytes", options.max_bytes > 0 ? options.max_bytes : -1)
      .add("max_msgs", options.max_messages > 0 ? options.max_messages : -1)
      .add("max_age", nanoseconds{options.max_age}.count())
      .add("duplicate_window", nanoseconds{options.duplicate_window}.count());
  config.close();
  return text;
}

Danger danger_in(const StreamConfig& config, const std::string& subjects, Fence fence) {
  Danger danger;
  if (config.sealed) {
    danger = {FailureClass::stream_sealed, "is sealed and takes no message"};
  } else if (config.no_ack) {
    danger.what = "doesn't acknowledge what it stores; make it without no_ack";
  } else if (!takes(config, subjects)) {
    danger = {FailureClass::subject,
              "doesn't take the subjects '" + subjects + "'; add them to it"};
  } else if (fence != Fence::none) {
    danger.what = fenced_danger(config);
  }
  if (!danger.what.empty()) danger.what.insert(0, "the JetStream stream '" + config.name + "' ");
  return danger;
}

}  // namespace stela::nats

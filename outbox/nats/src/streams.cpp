#include "streams.hpp"

#include <algorithm>
#include <string_view>

namespace stela::nats {
namespace {

std::int64_t nanoseconds(std::chrono::seconds time) {
  return std::chrono::nanoseconds{time}.count();
}

std::string_view first_token(std::string_view subject) {
  return subject.substr(0, subject.find('.'));
}

/// Some of them at least: a stream may be made for fewer events than there are, and one that no
/// stream takes has an answer of its own.
bool takes(const jsStreamConfig& config, const std::string& subjects) {
  return std::any_of(config.Subjects, config.Subjects + config.SubjectsLen,
                     [&](const char* pattern) {
                       const std::string_view token = first_token(pattern);
                       return token == ">" || token == "*" || token == first_token(subjects);
                     });
}

std::string fenced_danger(const jsStreamConfig& config) {
  if (config.Retention != js_LimitsPolicy) {
    return "removes messages when they are consumed, and what stands in it can't be read back; "
           "make it with limits retention";
  }
  if (config.Storage != js_FileStorage) {
    return "keeps its messages in memory, and a server that is started again has lost what it "
           "acknowledged; make it with file storage";
  }
  const bool has_limit = config.MaxMsgs > 0 || config.MaxBytes > 0;
  if (config.Discard != js_DiscardNew && has_limit) {
    return "drops its oldest messages when it is full; set its discard policy to new";
  }
  if (config.MaxMsgsPerSubject > 0) {
    return "keeps only some messages of each subject; remove max_msgs_per_subject";
  }
  if (config.Mirror != nullptr || config.SourcesLen > 0) {
    return "takes messages from other streams, and the relay must be its only writer; give the "
           "relay a stream of its own";
  }
  return {};
}

}  // namespace

void make_stream(jsCtx* context, const std::string& name, const std::string& subjects,
                 const StreamOptions& options) {
  const char* const subject = subjects.c_str();
  const char* list[] = {subject};
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = name.c_str();
  config.Subjects = list;
  config.SubjectsLen = 1;
  config.Storage = js_FileStorage;
  config.Retention = js_LimitsPolicy;
  config.Discard = js_DiscardNew;
  config.Replicas = options.replicas;
  config.MaxBytes = options.max_bytes > 0 ? options.max_bytes : -1;
  config.MaxMsgs = options.max_messages > 0 ? options.max_messages : -1;
  config.MaxAge = nanoseconds(options.max_age);
  config.Duplicates = nanoseconds(options.duplicate_window);
  jsErrCode code{};
  const natsStatus status = js_AddStream(nullptr, context, &config, nullptr, &code);
  if (code == JSStreamSubjectOverlapErr) {
    throw UsageError{"the stream '" + name + "' can't be made: its subjects '" + subjects +
                     "' overlap with those of another; give each database a prefix of its own"};
  }
  check(status, "making the stream '" + name + "' (JetStream error " +
                    std::to_string(static_cast<int>(code)) + ")");
}

std::string danger_in(const jsStreamConfig& config, const std::string& subjects, Fence fence) {
  std::string danger;
  if (config.Sealed) {
    danger = "is sealed and takes no message";
  } else if (config.NoAck) {
    danger = "doesn't acknowledge what it stores; make it without no_ack";
  } else if (!takes(config, subjects)) {
    danger = "doesn't take the subjects '" + subjects + "'; add them to it";
  } else if (fence != Fence::none) {
    danger = fenced_danger(config);
  }
  if (danger.empty()) return {};
  return std::string{"the JetStream stream '"} + config.Name + "' " + danger;
}

}  // namespace stela::nats

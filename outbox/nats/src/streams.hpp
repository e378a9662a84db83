// JetStream streams: their creation, the server's description, and whether they keep published
// messages.
#pragma once

#include "replies.hpp"

#include <stela/nats/publisher.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace stela::nats {

/// The relevant parts of a stream's configuration, in the server's words.
struct StreamConfig {
  std::string name = {};
  std::vector<std::string> subjects = {};
  std::string retention = {};
  std::string storage = {};
  std::string discard = {};
  /// Since server 2.12.
  std::string persist_mode = {};
  std::int64_t max_messages = 0;
  std::int64_t max_bytes = 0;
  std::int64_t max_messages_per_subject = 0;
  std::int64_t max_message_bytes = 0;
  std::int64_t max_age = 0;
  bool no_ack = false;
  bool sealed = false;
  bool has_sources = false;
};

struct StreamInfo {
  StreamConfig config = {};
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
};

/// The stream in a reply to STREAM.INFO or STREAM.CREATE. DecodeError if it can't be read.
std::variant<StreamInfo, ApiError> read_stream_info(std::string_view reply);

/// The body of STREAM.CREATE.
std::string creation_of(const std::string& name, const std::string& subjects,
                        const StreamOptions& options);

struct Danger {
  FailureClass failure = FailureClass::stream_settings;
  /// The danger and its remedy; empty if there is none.
  std::string what = {};
};

/// How this configuration endangers the fence, if it does.
Danger danger_in(const StreamConfig& config, const std::string& subjects, Fence fence);

}  // namespace stela::nats

// What the server says, as answers of the outbox's port.
#pragma once

#include "delivery.hpp"
#include "envelope.hpp"
#include "handles.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/outbox/publisher.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace stela::nats {

/// The number that a text begins with; 0 if it begins with none.
template <class Number = std::uint64_t>
Number number_in(std::string_view text) noexcept {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// An error of JetStream, as a reply has it.
struct ApiError {
  /// As in HTTP; 0 if it isn't known.
  int status = 0;
  /// JetStream's own number; 0 if there is none.
  int code = 0;
  std::string description = {};
};

/// What the broker says of an error, as it is kept and shown: 500 bytes at most.
std::string kept_words(std::string_view words);

/// "stream not found (JetStream error 10059)"
std::string in_words(const ApiError& error);

/// What an error means to the relay, and to people.
struct Meaning {
  Answer::Kind kind;
  FailureClass failure;
};

/// The meaning of an error: docs/reference/wire-format.md has the table. An error that isn't known
/// to be a message's own fault is the broker's.
Meaning meaning_of(const ApiError& error) noexcept;
inline Answer::Kind kind_of(const ApiError& error) noexcept {
  return meaning_of(error).kind;
}

/// The error in the open object of a reply. DecodeError if it can't be read.
std::optional<ApiError> error_in(json::Reader& reply);

/// The answer in a reply to a publish.
Answer read_reply(natsMsg* reply);

/// What the relay has to know of the message in a reply to STREAM.MSG.GET. DecodeError if it can't
/// be read.
std::variant<FoundMessage, ApiError> read_message(std::string_view reply);

/// A message as a stream has it.
struct StoredMessage {
  std::uint64_t sequence = 0;
  std::string subject = {};
  KeptHeaders::Map headers = {};
  std::string payload = {};
  /// Nanoseconds, as the broker counts them.
  std::int64_t time = 0;
};

/// As `read_message`, with all that the message has.
std::variant<StoredMessage, ApiError> read_whole_message(std::string_view reply);

/// Whether the error of a STREAM.MSG.GET says that the stream has no such message.
bool is_missing_message(const ApiError& error) noexcept;

/// How much STREAM.MSG.GET is asked for at a time. Servers answer so many at once; what they may
/// weigh is bounded.
constexpr std::size_t most_messages_asked = 256;
constexpr std::size_t most_bytes_asked = std::size_t{16} * 1024 * 1024;

/// What a reply with a message of so many bytes weighs: they come in base64, in a frame.
constexpr std::size_t in_reply(std::uint64_t bytes) noexcept {
  constexpr std::size_t frame_bytes = 512;
  return static_cast<std::size_t>(bytes / 3 * 4) + frame_bytes;
}

/// A message as it stands in a stream.
FoundMessage describe(const Headers& headers, std::uint64_t broker_sequence);

}  // namespace stela::nats

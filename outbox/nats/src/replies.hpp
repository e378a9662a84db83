// Translates the server's replies into answers of the outbox's port.
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

/// The number at the start of a text; 0 if there is none.
template <class Number = std::uint64_t>
Number number_in(std::string_view text) noexcept {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// An error of JetStream, from a reply.
struct ApiError {
  /// As in HTTP; 0 if unknown.
  int status = 0;
  /// JetStream's own number; 0 if there is none.
  int code = 0;
  std::string description = {};
};

/// The broker's error text, cut to 500 bytes for storing and showing.
std::string kept_words(std::string_view words);

/// "stream not found (JetStream error 10059)"
std::string in_words(const ApiError& error);

/// What an error means to the relay, and to people.
struct Meaning {
  Answer::Kind kind;
  FailureClass failure;
};

/// The meaning of an error: docs/reference/wire-format.md has the table. An error counts as the
/// broker's unless it is known to be the message's own fault.
Meaning meaning_of(const ApiError& error) noexcept;
inline Answer::Kind kind_of(const ApiError& error) noexcept {
  return meaning_of(error).kind;
}

/// The error in the open object of a reply. DecodeError if it can't be read.
std::optional<ApiError> error_in(json::Reader& reply);

/// The answer in a reply to a publish.
Answer read_reply(natsMsg* reply);

/// What the relay needs to know of the message in a reply to STREAM.MSG.GET. DecodeError if it
/// can't be read.
std::variant<FoundMessage, ApiError> read_message(std::string_view reply);

/// A message as stored in a stream.
struct StoredMessage {
  std::uint64_t sequence = 0;
  std::string subject = {};
  KeptHeaders::Map headers = {};
  std::string payload = {};
  /// By the broker's clock, in nanoseconds.
  std::int64_t time = 0;
};

/// As `read_message`, with the complete message.
std::variant<StoredMessage, ApiError> read_whole_message(std::string_view reply);

/// Whether the error of a STREAM.MSG.GET says that the stream has no such message.
bool is_missing_message(const ApiError& error) noexcept;

/// Limits of the STREAM.MSG.GET requests in flight. Servers answer this many at once; the bytes
/// bound their memory.
constexpr std::size_t most_messages_asked = 256;
constexpr std::size_t most_bytes_asked = std::size_t{16} * 1024 * 1024;

/// The size of a reply with a message of this many bytes: base64 in a frame.
constexpr std::size_t in_reply(std::uint64_t bytes) noexcept {
  constexpr std::size_t frame_bytes = 512;
  return static_cast<std::size_t>(bytes / 3 * 4) + frame_bytes;
}

/// A message as found in a stream.
FoundMessage describe(const Headers& headers, std::uint64_t broker_sequence);

}  // namespace stela::nats

// The headers that describe a message's event: CloudEvents 1.0 in binary mode, and what a consumer
// needs to detect gaps. docs/reference/wire-format.md specifies them.
#pragma once

#include "handles.hpp"

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/detail/function_ref.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/outbox/publisher.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stela::nats {

namespace header {
/// Set only by servers, in answers without a message.
inline constexpr const char* status = "Status";
inline constexpr const char* message_id = "Nats-Msg-Id";
inline constexpr const char* store = "Stela-Store";
inline constexpr const char* sequence = "Stela-Sequence";
inline constexpr const char* previous = "Stela-Previous";
inline constexpr const char* stream_previous = "Stela-Stream-Previous";
inline constexpr const char* generation = "Stela-Generation";
inline constexpr const char* redelivery = "Stela-Redelivery";
/// Prefixes a user's headers, so that they can't be mistaken for ours.
inline constexpr std::string_view user_prefix = "Stela-Header-";
}  // namespace header

/// CloudEvents' rule for header values: space, '"', '%' and everything but printable ASCII is
/// written as %XX.
void append_percent_encoded(std::string& out, std::string_view text);
/// CorruptEvent if a '%' isn't followed by two hexadecimal digits.
std::string percent_decoded(std::string_view text);

/// What a publisher adds to the event's own description.
struct EnvelopeOptions {
  /// ce-source; empty: "urn:uuid:<store id>".
  std::string source = {};
  /// ce-tenant; empty: none.
  std::string tenant = {};
  std::string_view content_type = {};
  const Partitioner* partitioner = nullptr;
};

std::string_view content_type_of(Codec codec) noexcept;

/// Threads: one at a time.
class EnvelopeWriter {
 public:
  explicit EnvelopeWriter(const EnvelopeOptions& options) : options_{options} {}

  /// Sets all headers except those of the fence. CorruptEvent if the event's stored context can't
  /// be read.
  void write(natsMsg* message, const OutgoingMessage& outgoing);

 private:
  void write_attributes(const OutgoingMessage& outgoing);
  void write_context(const StoredEvent& event);
  void add_generation(const GenerationMark& generation);

  void add(const char* name, std::string_view plain);
  void add(const char* name, std::int64_t number);
  void add_sortable(const char* name, std::int64_t number);
  void add_encoded(const char* name, std::string_view text);
  void add_unless_empty(const char* name, std::string_view text);
  void set(const char* name);

  const EnvelopeOptions options_;
  natsMsg* message_ = nullptr;
  /// Reused for each header, so that it grows only once.
  std::string value_;
};

/// The headers of a received message, wherever they are kept.
class Headers {
 public:
  virtual ~Headers() = default;
  /// Empty if it is missing; valid as long as the message.
  virtual std::string_view get(const char* name) const = 0;
  /// True if the header is repeated, of which `get` returns only the first.
  virtual bool has_more_than_one(const char* name) const = 0;
  /// Visits each header, including repeated ones.
  virtual void for_each(
      FunctionRef<void(std::string_view name, std::string_view value)> use) const = 0;
};

/// An event as it was received.
struct ReceivedEvent {
  std::string store_id = {};
  StreamId stream;
  EventKind kind = {};
  GlobalSequence sequence = {};
  StreamVersion version = {};
  StreamVersion published_before = {};
  EventId id = {};
  Timestamp recorded_at = {};
  std::string correlation = {};
  EventId causation_id = {};
  std::string metadata = {};
  Codec codec = Codec::json;
  std::int64_t redelivery = 0;
  GenerationMark generation = {};
  /// A relay with a fence published it, so sequences of first publications rise.
  bool is_fenced = false;
  std::string_view payload = {};

  /// A view of this event, for handlers and contexts.
  StoredEvent as_stored() const;
};

/// CorruptEvent, naming the header, if the message isn't one of Stela's.
ReceivedEvent read_envelope(const Headers& headers, std::string_view payload);

}  // namespace stela::nats

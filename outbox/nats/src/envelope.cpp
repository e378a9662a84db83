#include "envelope.hpp"

#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>

#include <charconv>

namespace stela::nats {
namespace {

constexpr std::string_view json_type = "application/json";
constexpr std::string_view binary_type = "application/vnd.stela.binary";

/// No store ever reaches it. Sums beyond it would overflow.
constexpr std::int64_t largest_number = 1'000'000'000'000'000'000;

constexpr bool is_plain(char c) noexcept {
  return c > ' ' && c <= '~' && c != '"' && c != '%';
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

[[noreturn]] void refuse(std::string_view header, std::string_view problem) {
  throw CorruptEvent{"the message isn't one of Stela's: header '" + std::string{header} + "' " +
                     std::string{problem}};
}

std::string_view require(const Headers& headers, const char* name) {
  const std::string_view value = headers.get(name);
  if (value.empty()) refuse(name, "is missing");
  // With two of them, readers could disagree about which one counts.
  if (headers.has_more_than_one(name)) refuse(name, "appears more than once");
  return value;
}

std::int64_t number_in(std::string_view text, const char* name, std::int64_t least) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  if (!is_number || value < least || value > largest_number) {
    refuse(name, "isn't a number from " + std::to_string(least) + " to " +
                     std::to_string(largest_number));
  }
  return value;
}

std::int64_t require_number(const Headers& headers, const char* name, std::int64_t least) {
  return number_in(require(headers, name), name, least);
}

/// Parses "2 1042": a generation after the first, and its first sequence.
GenerationMark require_generation(const Headers& headers) {
  const std::string_view text = require(headers, header::generation);
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) refuse(header::generation, "isn't two numbers");
  return {.number = number_in(text.substr(0, space), header::generation, 2),
          .first = GlobalSequence{number_in(text.substr(space + 1), header::generation, 1)}};
}

Uuid require_uuid(const char* name, std::string_view text) {
  const auto id = Uuid::parse(text);
  if (!id) refuse(name, "isn't a UUID");
  if (id->is_nil()) refuse(name, "is the nil UUID, which nothing has");
  return *id;
}

StreamId require_stream(const Headers& headers) {
  try {
    return StreamId::parse(percent_decoded(require(headers, "ce-subject")));
  } catch (const UsageError& e) {
    refuse("ce-subject", "isn't the name of a stream: " + std::string{e.what()});
  }
}

Timestamp require_time(const Headers& headers) {
  const auto time = parse_timestamp(require(headers, "ce-time"));
  if (!time) refuse("ce-time", "isn't a time in RFC 3339 and UTC");
  return *time;
}

Codec require_codec(const Headers& headers) {
  const std::string_view type = require(headers, "ce-datacontenttype");
  if (type == json_type) return Codec::json;
  if (type == binary_type) return Codec::portable_binary;
  refuse("ce-datacontenttype", "is '" + std::string{type} + "', which isn't a codec of Stela's");
}

std::string read_metadata(const Headers& headers, const std::string& correlation) {
  Context context{.correlation_id = correlation};
  context.actor = percent_decoded(headers.get("ce-actor"));
  context.traceparent = percent_decoded(headers.get("traceparent"));
  context.tracestate = percent_decoded(headers.get("tracestate"));
  headers.for_each([&](std::string_view name, std::string_view value) {
    if (!name.starts_with(header::user_prefix)) return;
    name.remove_prefix(header::user_prefix.size());
    context.headers.emplace(name, percent_decoded(value));
  });
  try {
    metadata::check(context);
  } catch (const UsageError& e) {
    throw CorruptEvent{"the message isn't one of Stela's: " + std::string{e.what()}};
  }
  return metadata::encode(context);
}

}  // namespace

void append_percent_encoded(std::string& out, std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  for (const char c : text) {
    if (is_plain(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    const int high = at + 2 < text.size() ? hex_digit(text[at + 1]) : -1;
    const int low = at + 2 < text.size() ? hex_digit(text[at + 2]) : -1;
    if (high < 0 || low < 0) {
      throw CorruptEvent{"a header's value has a '%' without two hexadecimal digits after it"};
    }
    out += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return out;
}

std::string_view content_type_of(Codec codec) noexcept {
  return codec == Codec::json ? json_type : binary_type;
}

// --- writing

void EnvelopeWriter::set(const char* name) {
  check(natsMsgHeader_Set(message_, name, value_.c_str()), "setting a header");
}

void EnvelopeWriter::add(const char* name, std::string_view plain) {
  value_.assign(plain);
  set(name);
}

void EnvelopeWriter::add(const char* name, std::int64_t number) {
  char digits[24];
  value_.assign(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  set(name);
}

/// Adds twenty digits, which sort as text.
void EnvelopeWriter::add_sortable(const char* name, std::int64_t number) {
  char digits[24];
  const char* const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  const auto size = static_cast<std::size_t>(end - digits);
  value_.assign(20 - size, '0');
  value_.append(digits, size);
  set(name);
}

void EnvelopeWriter::add_encoded(const char* name, std::string_view text) {
  value_.clear();
  append_percent_encoded(value_, text);
  set(name);
}

void EnvelopeWriter::add_unless_empty(const char* name, std::string_view text) {
  if (!text.empty()) add_encoded(name, text);
}

void EnvelopeWriter::write(natsMsg* message, const OutgoingMessage& outgoing) {
  message_ = message;
  add(header::message_id, outgoing.message_id);
  write_attributes(outgoing);
  write_context(outgoing.event);
  add(header::store, outgoing.store_id);
  add(header::sequence, outgoing.event.sequence.value());
  // A partition without an order has no previous message.
  if (outgoing.predecessor) add(header::previous, outgoing.previous.value());
  add(header::stream_previous, outgoing.event.published_before.value());
  if (outgoing.generation) add_generation(*outgoing.generation);
  if (outgoing.redelivery > 0) add(header::redelivery, outgoing.redelivery);
}

void EnvelopeWriter::add_generation(const GenerationMark& generation) {
  add(header::generation,
      std::to_string(generation.number) + ' ' + std::to_string(generation.first.value()));
}

void EnvelopeWriter::write_attributes(const OutgoingMessage& outgoing) {
  const StoredEvent& event = outgoing.event;
  add("ce-specversion", "1.0");
  add("ce-id", event.id.to_string());
  add("ce-type", event.type());
  if (options_.source.empty()) {
    value_ = "urn:uuid:";
    value_ += outgoing.store_id;
    set("ce-source");
  } else {
    add_encoded("ce-source", options_.source);
  }
  if (!options_.tenant.empty()) add("ce-tenant", options_.tenant);
  add("ce-time", to_string(event.recorded_at));
  add_encoded("ce-subject", event.stream.name());
  add("ce-datacontenttype", options_.content_type);
  add_sortable("ce-sequence", event.sequence.value());
  std::string scratch;
  add_encoded("ce-partitionkey", options_.partitioner->key(PartitionedEvent::of(event), scratch));
  add("ce-streamversion", event.version.value());
  add("ce-schemaversion", std::int64_t{event.schema_version()});
  add_encoded("ce-correlationid", event.correlation_id());
  if (!event.causation_id.is_nil()) add("ce-causationid", event.causation_id.to_string());
}

void EnvelopeWriter::write_context(const StoredEvent& event) {
  if (event.metadata.empty()) return;
  const Context context = event.context();
  add_unless_empty("ce-actor", context.actor);
  add_unless_empty("traceparent", context.traceparent);
  add_unless_empty("tracestate", context.tracestate);
  for (const auto& [name, value] : context.headers) {
    add_encoded((std::string{header::user_prefix} + name).c_str(), value);
  }
}

StoredEvent ReceivedEvent::as_stored() const {
  return {.sequence = sequence,
          .stream = stream,
          .version = version,
          .kind = kind,
          .id = id,
          .recorded_at = recorded_at,
          .correlation = correlation,
          .causation_id = causation_id,
          .metadata = metadata,
          .published_before = published_before,
          .payload = payload};
}

ReceivedEvent read_envelope(const Headers& headers, std::string_view payload) {
  if (!headers.get(header::status).empty()) {
    refuse(header::status, "is what a server says, and no event has");
  }
  if (require(headers, "ce-specversion") != "1.0") refuse("ce-specversion", "isn't 1.0");
  ReceivedEvent event{.stream = require_stream(headers)};
  event.store_id = require(headers, header::store);
  require_uuid(header::store, event.store_id);
  event.kind.type = require(headers, "ce-type");
  if (!is_valid_event_name(event.kind.type)) refuse("ce-type", "isn't the name of an event");
  const std::int64_t schema = require_number(headers, "ce-schemaversion", 1);
  event.kind.schema_version = static_cast<int>(std::min<std::int64_t>(schema, 1'000'000));
  event.kind.publishes = true;
  event.sequence = GlobalSequence{require_number(headers, header::sequence, 1)};
  event.version = StreamVersion{require_number(headers, "ce-streamversion", 1)};
  // Each event takes a sequence of its own, so a version can't be larger.
  if (event.version.value() > event.sequence.value()) {
    refuse("ce-streamversion", "is greater than 'Stela-Sequence'");
  }
  event.published_before = StreamVersion{require_number(headers, header::stream_previous, 0)};
  if (event.published_before >= event.version) {
    refuse(header::stream_previous, "isn't less than 'ce-streamversion'");
  }
  event.id = require_uuid("ce-id", require(headers, "ce-id"));
  event.recorded_at = require_time(headers);
  event.correlation = percent_decoded(require(headers, "ce-correlationid"));
  if (const auto cause = headers.get("ce-causationid"); !cause.empty()) {
    event.causation_id = require_uuid("ce-causationid", cause);
  }
  event.metadata = read_metadata(headers, event.correlation);
  event.codec = require_codec(headers);
  event.is_fenced = !headers.get(header::previous).empty();
  if (!headers.get(header::redelivery).empty()) {
    event.redelivery = require_number(headers, header::redelivery, 1);
  }
  if (!headers.get(header::generation).empty()) event.generation = require_generation(headers);
  event.payload = payload;
  return event;
}

}  // namespace stela::nats

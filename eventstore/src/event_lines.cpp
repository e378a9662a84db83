#include "event_lines.hpp"

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/base64.hpp>
#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/detail/metadata.hpp>
#include <stela/framework/error.hpp>

#include <simdjson.h>

#include <array>
#include <limits>
#include <new>
#include <optional>
#include <ostream>

namespace stela {
namespace {

constexpr std::string_view format_name = "stela-events";

void check(const std::ostream& out) {
  if (!out) throw StoreFailed{"writing the export failed: is there space, and may it be written?"};
}
constexpr std::int64_t version_of_events = 1;
/// The version of a header that names the exported store, or types with tags.
constexpr std::int64_t version_of_stores_and_tags = 2;

bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::optional<Codec> parse_codec(std::string_view name) {
  for (const Codec codec : {Codec::json, Codec::portable_binary}) {
    if (name == to_string(codec)) return codec;
  }
  return std::nullopt;
}

[[noreturn]] void refuse(std::string_view field, std::string_view problem) {
  throw BadLine{std::string{field} + ' ' + std::string{problem}};
}

/// Parses one line: every field once, no unknown ones.
class LineParser {
 public:
  LineParser(std::string_view line, const ExportHeader& header, Embedding& embedding)
      : reader_{line},
        codec_{header.codec},
        may_have_tags_{header.has_tags},
        embedding_{embedding} {}

  ParsedEvent parse() {
    reader_.open_object();
    std::string name;
    while (reader_.next_member(name)) take(name);
    reader_.close();
    reader_.finish();
    for (std::size_t i = 0; i < count_of_required; ++i) {
      if (!seen_[i]) refuse(fields[i].name, "is missing");
    }
    if (seen_[payload] == seen_[payload_base64]) refuse("payload", "must appear once");
    return {std::move(*stream_),
            std::move(kind_),
            sequence_,
            version_,
            id_,
            recorded_at_,
            std::move(context_.correlation_id),
            causation_,
            std::move(metadata_),
            std::move(payload_),
            std::move(tags_)};
  }

 private:
  using Take = void (LineParser::*)();
  struct Field {
    std::string_view name;
    Take take;
  };
  enum Number : std::size_t { count_of_required = 8, payload = 11, payload_base64 = 12 };
  static const std::array<Field, 14> fields;

  void take(std::string_view name) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].name != name) continue;
      if (seen_[i]) refuse(name, "appears twice");
      seen_[i] = true;
      return (this->*fields[i].take)();
    }
    refuse(std::string{'\''}.append(name).append(1, '\''), "isn't a field of an event");
  }

  std::int64_t positive(std::string_view field) {
    const std::int64_t value = reader_.get_int64();
    if (value < 1) refuse(field, "is less than 1");
    return value;
  }
  Uuid uuid(std::string_view field) {
    const auto id = Uuid::parse(reader_.get_string());
    if (!id || id->is_nil()) refuse(field, "isn't a UUID, or is that of all zeros");
    return *id;
  }
  std::string raw(std::string_view field) {
    const std::string_view text = reader_.get_raw();
    if (!embedding_.allows(text)) refuse(field, "isn't JSON");
    return std::string{text};
  }
  void check_payload() const {
    if (payload_.size() > codec::max_payload_size) refuse("payload", "is larger than 64 MiB");
  }

  void take_sequence() { sequence_ = GlobalSequence{positive("sequence")}; }
  void take_stream() { stream_ = StreamId::parse(reader_.get_string()); }
  void take_version() { version_ = StreamVersion{positive("version")}; }
  void take_id() { id_ = uuid("id"); }
  void take_type() {
    kind_.type = reader_.get_string();
    if (!is_valid_event_name(kind_.type)) refuse("type", "isn't the name of an event");
  }
  void take_schema_version() {
    const std::int64_t value = positive("schema_version");
    if (value > std::numeric_limits<std::int32_t>::max()) refuse("schema_version", "is too large");
    kind_.schema_version = static_cast<std::int32_t>(value);
  }
  void take_publishes() { kind_.publishes = reader_.get_bool(); }
  void take_recorded_at() {
    recorded_at_ = Timestamp{std::chrono::microseconds{reader_.get_int64()}};
  }
  void take_correlation() {
    context_.correlation_id = reader_.get_string();
    if (context_.correlation_id.empty()) refuse("correlation", "is empty; leave it out");
    metadata::check(context_);
  }
  void take_causation() { causation_ = uuid("causation"); }
  void take_metadata() {
    metadata_ = raw("metadata");
    metadata::check(metadata::decode(metadata_));
  }
  void take_payload() {
    if (codec_ != Codec::json) refuse("payload", "of this codec must be in payload_base64");
    payload_ = raw("payload");
    check_payload();
  }
  void take_payload_base64() {
    if (!base64::decode(reader_.get_string(), payload_)) refuse("payload_base64", "isn't base64");
    check_payload();
  }

  void take_tags() {
    if (!may_have_tags_)
      refuse("tags", "aren't announced by the header: its tag_types are missing");
    reader_.open_array();
    while (reader_.next_element()) tags_.push_back(Tag::parse(reader_.get_string()));
    reader_.close();
    if (tags_.empty()) refuse("tags", "are empty; leave them out");
  }

  json::Reader reader_;
  const Codec codec_;
  const bool may_have_tags_;
  Embedding& embedding_;
  std::array<bool, 14> seen_{};
  GlobalSequence sequence_;
  std::optional<StreamId> stream_;
  StreamVersion version_;
  EventKind kind_;
  EventId id_;
  Timestamp recorded_at_;
  Context context_;
  EventId causation_;
  std::string metadata_;
  std::string payload_;
  std::vector<Tag> tags_;
};

const std::array<LineParser::Field, 14> LineParser::fields{{
    {"sequence", &LineParser::take_sequence},
    {"stream", &LineParser::take_stream},
    {"version", &LineParser::take_version},
    {"id", &LineParser::take_id},
    {"type", &LineParser::take_type},
    {"schema_version", &LineParser::take_schema_version},
    {"publishes", &LineParser::take_publishes},
    {"recorded_at", &LineParser::take_recorded_at},
    {"correlation", &LineParser::take_correlation},
    {"causation", &LineParser::take_causation},
    {"metadata", &LineParser::take_metadata},
    {"payload", &LineParser::take_payload},
    {"payload_base64", &LineParser::take_payload_base64},
    {"tags", &LineParser::take_tags},
}};

/// Rethrows parsing errors as BadLine.
template <class Parse>
auto parsing(Parse&& parse) {
  try {
    return parse();
  } catch (const codec::DecodeError& e) {
    // The reader calls its input a payload.
    constexpr std::string_view name = "the payload ";
    const std::string_view problem = e.what();
    if (!problem.starts_with(name)) throw BadLine{e.what()};
    throw BadLine{std::string{"it "}.append(problem.substr(name.size()))};
  } catch (const UsageError& e) {
    throw BadLine{e.what()};
  }
}

}  // namespace

struct Embedding::Parser {
  /// One level less than a reader accepts: the line itself adds one.
  Parser() {
    if (parser.allocate(0, simdjson::DEFAULT_MAX_DEPTH - 1) != simdjson::SUCCESS) {
      throw std::bad_alloc{};
    }
  }
  simdjson::dom::parser parser;
};

Embedding::Embedding() : parser_{std::make_unique<Parser>()} {}
Embedding::~Embedding() = default;

bool Embedding::allows(std::string_view bytes) {
  if (bytes.empty() || is_blank(bytes.front()) || is_blank(bytes.back())) return false;
  if (bytes.find_first_of("\r\n") != std::string_view::npos) return false;
  // Some versions of the parser skip a byte order mark.
  if (bytes.front() == '\xef') return false;
  const auto error = parser_->parser.parse(bytes.data(), bytes.size()).error();
  if (error == simdjson::MEMALLOC) throw std::bad_alloc{};
  return error == simdjson::SUCCESS;
}

ExportHeader header_of(Codec codec, TagCatalogue tags) {
  const bool has_tags = tags.has_tags || !tags.types.empty();
  return {.codec = codec, .has_tags = has_tags, .tag_types = std::move(tags.types)};
}

namespace {

void append_tag_types(std::string& out, std::span<const TagFact> types) {
  out += '[';
  for (const TagFact& fact : types) {
    if (out.back() != '[') out += ',';
    json::ObjectWriter{out}
        .add("type", fact.type)
        .add("category", fact.category)
        .add("always", fact.always)
        .add("several", fact.several)
        .add("since", fact.since)
        .close();
  }
  out += ']';
}

TagFact parse_tag_type(json::Reader& reader) {
  TagFact fact;
  reader.open_object();
  if (reader.select("type")) fact.type = reader.get_string();
  if (reader.select("category")) fact.category = reader.get_string();
  if (reader.select("always")) fact.always = reader.get_bool();
  if (reader.select("several")) fact.several = reader.get_bool();
  if (reader.select("since")) fact.since = reader.get_int64();
  reader.close();
  if (!is_valid_event_name(fact.type) || !is_valid_category(fact.category) || fact.since < 0) {
    throw BadLine{"the header says of a type's tags what can't be"};
  }
  return fact;
}

/// The fields that version 2 of the header adds.
void parse_additions(json::Reader& reader, ExportHeader& header) {
  if (reader.select("store_id")) {
    header.store_id = Uuid::parse(reader.get_string()).value_or(Uuid{});
    if (header.store_id.is_nil()) throw BadLine{"the id of the store isn't a UUID"};
  }
  header.has_tags = reader.select("tag_types");
  if (header.has_tags) {
    reader.open_array();
    while (reader.next_element()) header.tag_types.push_back(parse_tag_type(reader));
    reader.close();
  }
  if (header.store_id.is_nil() && !header.has_tags) {
    throw BadLine{"the header doesn't name its store or the types that carry tags"};
  }
}

}  // namespace

void append_header(std::string& out, const ExportHeader& header) {
  const bool is_whole = !header.store_id.is_nil();
  json::ObjectWriter line{out};
  line.add("format", format_name)
      .add("version", is_whole || header.has_tags ? version_of_stores_and_tags : version_of_events)
      .add("codec", to_string(header.codec));
  if (is_whole) line.add("store_id", header.store_id.to_string());
  if (header.has_tags) append_tag_types(line.key("tag_types"), header.tag_types);
  line.close();
  out += '\n';
}

ExportHeader parse_header(std::string_view line) {
  return parsing([&] {
    ExportHeader header;
    json::Reader reader{line};
    reader.open_object();
    if (!reader.select("format") || reader.get_string() != format_name) {
      throw BadLine{"this isn't an export of Stela: the header that names the format is missing"};
    }
    const std::int64_t version = reader.select("version") ? reader.get_int64() : 0;
    if (version != version_of_events && version != version_of_stores_and_tags) {
      throw BadLine{"this export is of another version of Stela, which this one can't read"};
    }
    if (!reader.select("codec")) throw BadLine{"the header doesn't name its codec"};
    const auto codec = parse_codec(reader.get_string());
    if (!codec) throw BadLine{"the codec isn't one that this Stela knows"};
    header.codec = *codec;
    if (version == version_of_stores_and_tags) parse_additions(reader, header);
    return header;
  });
}

void append_state(std::string& out, std::string_view table, std::string_view row) {
  json::ObjectWriter line{out};
  line.add("state", table).key("row").append(row);
  line.close();
  out += '\n';
}

bool is_state(std::string_view line) noexcept {
  return line.starts_with("{\"state\":");
}

ParsedState parse_state(std::string_view line, Embedding& embedding) {
  return parsing([&] {
    json::Reader reader{line};
    reader.open_object();
    if (!reader.select("state")) throw BadLine{"it doesn't name its state"};
    ParsedState state{.table = std::string{reader.get_string()}, .row = {}};
    if (!reader.select("row")) throw BadLine{"its row is missing"};
    state.row = reader.get_raw();
    if (!embedding.allows(state.row)) throw BadLine{"its row isn't JSON"};
    return state;
  });
}

void append_tags(std::string& out, std::string_view tags) {
  out += '[';
  split_tags(tags, [&](std::string_view tag) {
    if (out.back() != '[') out += ',';
    json::append_string(out, tag);
  });
  out += ']';
}

void append_line(std::string& out, const StoredEvent& event, Codec codec, Embedding& embedding) {
  json::ObjectWriter line{out};
  line.add("sequence", event.sequence.value())
      .add("stream", event.stream.name())
      .add("version", event.version.value())
      .add("id", event.id.to_string())
      .add("type", event.type())
      .add("schema_version", event.schema_version())
      .add("publishes", event.publishes())
      .add("recorded_at", event.recorded_at.time_since_epoch().count());
  if (!event.tags.empty()) append_tags(line.key("tags"), event.tags);
  if (!event.correlation.empty()) line.add("correlation", event.correlation);
  if (!event.causation_id.is_nil()) line.add("causation", event.causation_id.to_string());
  if (!event.metadata.empty()) {
    if (!embedding.allows(event.metadata)) {
      throw CorruptEvent{event.describe() + " is corrupt: its metadata isn't JSON"};
    }
    line.key("metadata").append(event.metadata);
  }
  if (codec == Codec::json && embedding.allows(event.payload)) {
    line.key("payload").append(event.payload);
  } else {
    std::string& text = line.key("payload_base64");
    text += '"';
    base64::append(text, event.payload);
    text += '"';
  }
  line.close();
  out += '\n';
}

void write_lines(std::ostream& out, std::string& text) {
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  check(out);
  text.clear();
}

void finish_lines(std::ostream& out, std::string& text) {
  write_lines(out, text);
  check(out.flush());
}

ParsedEvent parse_line(std::string_view line, const ExportHeader& header, Embedding& embedding) {
  return parsing([&] { return LineParser{line, header, embedding}.parse(); });
}

}  // namespace stela

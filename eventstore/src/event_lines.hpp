// The lines of an export: writing and parsing.
#pragma once

#include "database/event_import.hpp"

#include <stela/framework/codec/codec.hpp>
#include <stela/framework/query.hpp>
#include <stela/framework/stored_event.hpp>
#include <stela/framework/uuid.hpp>

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace stela {

/// Why a line isn't part of an export. The importer adds the line's number.
class BadLine : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The longest possible line: a payload of 64 MiB in base64, and the other fields.
inline constexpr std::size_t max_line_size = std::size_t{96} * 1024 * 1024;

/// Decides which bytes can be embedded in a line unchanged.
/// Threads: one at a time.
class Embedding {
 public:
  Embedding();
  ~Embedding();
  Embedding(const Embedding&) = delete;
  Embedding& operator=(const Embedding&) = delete;

  /// True if `bytes` are one JSON value without line breaks or surrounding blanks, so that a reader
  /// of the line gets back the same bytes. std::bad_alloc if memory is too short to tell.
  bool allows(std::string_view bytes);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

/// The first line of an export.
struct ExportHeader {
  Codec codec = Codec::json;
  /// Nil unless this is an export of an entire store: then state lines follow the events.
  Uuid store_id = {};
  /// Whether lines may have tags.
  bool has_tags = false;
  std::vector<TagFact> tag_types = {};
};
/// The header for a store with this codec and these tags.
ExportHeader header_of(Codec codec, TagCatalogue tags);
/// Appends the header with its line break.
void append_header(std::string& out, const ExportHeader& header);
/// BadLine unless `line` is a header that this version understands.
ExportHeader parse_header(std::string_view line);

/// The line of one row of a state: {"state":"outbox_partitions","row":{…}}.
void append_state(std::string& out, std::string_view table, std::string_view row);
bool is_state(std::string_view line) noexcept;
struct ParsedState {
  std::string table;
  /// As JSON.
  std::string row;
};
/// BadLine if `line` isn't a state line.
ParsedState parse_state(std::string_view line, Embedding& embedding);
/// The table name in the last line of a store's export.
inline constexpr std::string_view end_of_states = "end";

/// Appends a JSON array of stored tags.
void append_tags(std::string& out, std::string_view tags);
/// Appends the line of one event, with its line break. CorruptEvent if its metadata isn't JSON.
void append_line(std::string& out, const StoredEvent& event, Codec codec, Embedding& embedding);

/// How much text to collect before a write.
inline constexpr std::size_t write_bytes = std::size_t{256} * 1024;

/// Writes the lines of `text` and empties it. StoreFailed if they can't be written.
void write_lines(std::ostream& out, std::string& text);
/// Also writes the last line, and flushes.
void finish_lines(std::ostream& out, std::string& text);

/// BadLine, with a message that names the field, if `append_line` could not have written `line`.
ParsedEvent parse_line(std::string_view line, const ExportHeader& header, Embedding& embedding);

}  // namespace stela

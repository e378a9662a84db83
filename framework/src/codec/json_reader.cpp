#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <deque>
#include <new>
#include <system_error>
#include <vector>

namespace stela::json {

namespace ondemand = simdjson::ondemand;

namespace {

/// The name of a member as written in the document, with its escapes.
std::string_view raw_name(ondemand::raw_json_string key) noexcept {
  const char* const begin = key.raw();
  const char* end = begin;
  while (*end != '"') end += *end == '\\' ? 2 : 1;
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

/// One document and the way down to the current value.
struct Reader::Document {
  struct Level {
    bool is_array = false;
    bool is_begun = false;
    /// So far every member was asked for in document order: the usual case, in which nothing is
    /// skipped or searched again.
    bool is_in_order = true;
    std::size_t index = 0;
    std::size_t selected = 0;
    std::string_view member = {};
    ondemand::object object = {};
    ondemand::array array = {};
    ondemand::object_iterator next_member = {};
    ondemand::array_iterator next_element = {};

    /// Moves to the next member; false at the end.
    bool to_next_member() {
      if (is_begun) {
        ++next_member;
      } else {
        is_begun = true;
        if (object.begin().get(next_member) != simdjson::SUCCESS) return false;
      }
      return next_member != ondemand::object_iterator{};
    }
  };

  ondemand::parser parser;
  std::unique_ptr<simdjson::dom::parser> strict_parser;
  /// The text, followed by space for one unescaped string.
  std::vector<char> buffer;
  std::size_t size = 0;
  ondemand::document root;
  std::vector<Level> levels;
  ondemand::value current;
  std::vector<std::string_view> names;
  std::deque<std::string> unescaped_names;
  /// Copies of member names, one per level, for members that aren't asked for in document order. A
  /// path may need the name after an exception has destroyed the caller's own.
  std::deque<std::string> kept_names;
  bool has_unread = false;
  bool has_escapes = false;
  /// The whole document was parsed strictly.
  bool is_sound = false;

  std::string_view keep_name(std::string_view name) {
    if (kept_names.size() < levels.size()) kept_names.resize(levels.size());
    return kept_names[levels.size() - 1].assign(name);
  }
  void fill(std::string_view text);
  /// Parses strictly: the on-demand parser only skims skipped parts, and invalid JSON confuses it.
  void check_all(const Reader& reader);
  bool find(Level& level, std::string_view name, const Reader& reader);
  /// As `find`, among the names that have escapes in the document.
  bool find_escaped(Level& level, std::string_view name, const Reader& reader);
  void rewind(Level& level, const Reader& reader);
  void check_names(Level& level, const Reader& reader);

  /// Calls `f` with the current value, which is the document itself if the document is a scalar.
  template <class F>
  auto with_current(F&& f) {
    has_unread = has_unread || levels.empty();
    return levels.empty() ? f(root) : f(current);
  }

  static std::unique_ptr<Document> take();
  static void give_back(std::unique_ptr<Document> document) noexcept;
};

namespace {

/// Parsers are expensive to create and cheap to keep, so each thread keeps a few.
thread_local std::vector<std::unique_ptr<void, void (*)(void*)>> unused;

constexpr std::size_t kept_buffer_size = std::size_t{1024} * 1024;

}  // namespace

std::unique_ptr<Reader::Document> Reader::Document::take() {
  if (unused.empty()) return std::make_unique<Document>();
  std::unique_ptr<Document> document{static_cast<Document*>(unused.back().release())};
  unused.pop_back();
  document->levels.clear();
  document->has_unread = document->is_sound = false;
  return document;
}

void Reader::Document::give_back(std::unique_ptr<Document> document) noexcept try {
  if (unused.size() >= 4 || document->buffer.size() > kept_buffer_size) return;
  unused.emplace_back(document.release(), [](void* kept) { delete static_cast<Document*>(kept); });
} catch (...) {
  // Without memory to keep it, the next reader creates a new document.
}

void Reader::Document::fill(std::string_view text) {
  size = text.size();
  const std::size_t padded_size = size + simdjson::SIMDJSON_PADDING;
  if (buffer.size() < 2 * padded_size) buffer.resize(2 * padded_size);
  if (!text.empty()) std::memcpy(buffer.data(), text.data(), size);
  std::memset(buffer.data() + size, ' ', simdjson::SIMDJSON_PADDING);
  has_escapes = text.find('\\') != std::string_view::npos;
}

void Reader::Document::check_all(const Reader& reader) {
  if (is_sound) return;
  if (!strict_parser) strict_parser = std::make_unique<simdjson::dom::parser>();
  const auto error = strict_parser->parse(buffer.data(), size, false).error();
  if (error != simdjson::SUCCESS) {
    // The parser doesn't report the position of the error.
    levels.clear();
    reader.fail_parsing(error);
  }
  is_sound = true;
}

Reader::Reader(std::string_view text) : document_{Document::take()} {
  Document& d = *document_;
  d.fill(text);
  const simdjson::padded_string_view view{d.buffer.data(), d.size,
                                          d.size + simdjson::SIMDJSON_PADDING};
  const auto error = d.parser.iterate(view).get(d.root);
  if (error != simdjson::SUCCESS) fail_parsing(error);
}

Reader::~Reader() {
  Document::give_back(std::move(document_));
}

void Reader::open_object() {
  Document& d = *document_;
  const bool is_root = d.levels.empty();
  Document::Level& level = d.levels.emplace_back();
  const auto error =
      is_root ? d.root.get_object().get(level.object) : d.current.get_object().get(level.object);
  if (error == simdjson::SUCCESS) return;
  d.levels.pop_back();
  if (error == simdjson::INCORRECT_TYPE) fail("isn't an object");
  fail_parsing(error);
}

bool Reader::select(std::string_view name) {
  Document& d = *document_;
  Document::Level& level = d.levels.back();
  if (level.is_in_order) {
    if (!level.to_next_member()) {
      level.member = d.keep_name(name);
      return false;
    }
    auto field = *level.next_member;
    if (field.error() != simdjson::SUCCESS) {
      level.member = d.keep_name(name);
      fail_parsing(field.error());
    }
    if (field.value_unsafe().key().unsafe_is_equal(name)) {
      level.member = {field.value_unsafe().key().raw(), name.size()};
      d.current = std::move(field).value_unsafe().value();
      ++level.selected;
      return true;
    }
    level.is_in_order = false;
    d.check_all(*this);
  }
  level.member = d.keep_name(name);
  return d.find(level, name, *this) || (d.has_escapes && d.find_escaped(level, name, *this));
}

bool Reader::select_unnamed(std::size_t number) {
  const bool found = select(codec::unnamed_field(number));
  Document::Level& level = document_->levels.back();
  level.member = {};
  level.index = number;
  return found;
}

bool Reader::Document::find(Level& level, std::string_view name, const Reader& reader) {
  const auto error = level.object.find_field_unordered(name).get(current);
  if (error == simdjson::NO_SUCH_FIELD) return false;
  if (error != simdjson::SUCCESS) reader.fail_parsing(error);
  ++level.selected;
  return true;
}

bool Reader::Document::find_escaped(Level& level, std::string_view name, const Reader& reader) {
  rewind(level, reader);
  while (level.to_next_member()) {
    ondemand::field field;
    if (const auto error = (*level.next_member).get(field); error != simdjson::SUCCESS) {
      reader.fail_parsing(error);
    }
    const std::string_view raw = raw_name(field.key());
    if (raw.find('\\') == std::string_view::npos || reader.unescape(raw.data()) != name) continue;
    current = field.value();
    ++level.selected;
    return true;
  }
  return false;
}

void Reader::Document::rewind(Level& level, const Reader& reader) {
  bool is_not_empty = false;
  if (level.object.reset().get(is_not_empty) != simdjson::SUCCESS) reader.fail("isn't an object");
  level.is_begun = false;
}

bool Reader::next_member(std::string& name) {
  Document& d = *document_;
  Document::Level& level = d.levels.back();
  if (!level.to_next_member()) return false;
  ondemand::field field;
  if (const auto error = (*level.next_member).get(field); error != simdjson::SUCCESS) {
    fail_parsing(error);
  }
  d.current = field.value();
  name = unescape(field.key().raw());
  level.member = d.keep_name(name);
  return true;
}

std::size_t Reader::open_array() {
  Document& d = *document_;
  const bool is_root = d.levels.empty();
  Document::Level& level = d.levels.emplace_back();
  level.is_array = true;
  auto error =
      is_root ? d.root.get_array().get(level.array) : d.current.get_array().get(level.array);
  std::size_t count = 0;
  if (error == simdjson::SUCCESS) error = level.array.count_elements().get(count);
  if (error == simdjson::SUCCESS) return count;
  d.levels.pop_back();
  if (error == simdjson::INCORRECT_TYPE) fail("isn't an array");
  fail_parsing(error);
}

bool Reader::next_element() {
  Document& d = *document_;
  Document::Level& level = d.levels.back();
  if (level.is_begun) {
    ++level.next_element;
    ++level.index;
  } else {
    level.is_begun = true;
    if (level.array.begin().get(level.next_element) != simdjson::SUCCESS) fail("isn't an array");
  }
  if (!(level.next_element != ondemand::array_iterator{})) return false;
  if (const auto error = (*level.next_element).get(d.current); error != simdjson::SUCCESS) {
    fail_parsing(error);
  }
  return true;
}

void Reader::close() {
  Document& d = *document_;
  Document::Level& level = d.levels.back();
  if (!level.is_array && (!level.is_in_order || level.to_next_member())) {
    d.check_all(*this);
    d.check_names(level, *this);
  }
  d.levels.pop_back();
}

void Reader::Document::check_names(Level& level, const Reader& reader) {
  level.member = {};
  names.clear();
  unescaped_names.clear();
  rewind(level, reader);
  while (level.to_next_member()) {
    ondemand::field field;
    if (const auto error = (*level.next_member).get(field); error != simdjson::SUCCESS) {
      reader.fail_parsing(error);
    }
    std::string_view name = raw_name(field.key());
    if (name.find('\\') != std::string_view::npos) {
      name = unescaped_names.emplace_back(reader.unescape(name.data()));
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    level.member = *twice;
    reader.fail("appears twice");
  }
  has_unread = has_unread || names.size() > level.selected;
}

void Reader::finish() {
  Document& d = *document_;
  // Skipped parts were only skimmed.
  if (d.has_unread || d.is_sound) return d.check_all(*this);
  std::string_view read;
  const auto error = d.root.raw_json().get(read);
  if (error != simdjson::SUCCESS) fail_parsing(error);
  const char* const end = d.buffer.data() + d.size;
  for (const char* rest = read.data() + read.size(); rest < end; ++rest) {
    if (std::strchr(" \t\r\n", *rest) == nullptr) fail("has more text after its end");
  }
}

bool Reader::is_null() {
  bool null = false;
  const auto error = document_->with_current(
      [&](auto& value) { return simdjson::simdjson_result<bool>{value.is_null()}.get(null); });
  if (error != simdjson::SUCCESS) fail("isn't a value");
  return null;
}

bool Reader::get_bool() {
  bool result = false;
  const auto error =
      document_->with_current([&](auto& value) { return value.get_bool().get(result); });
  if (error != simdjson::SUCCESS) fail("isn't true or false");
  return result;
}

std::int64_t Reader::get_int64() {
  std::int64_t result = 0;
  const auto error =
      document_->with_current([&](auto& value) { return value.get_int64().get(result); });
  if (error != simdjson::SUCCESS) fail("isn't a whole number of 64 bits");
  return result;
}

std::uint64_t Reader::get_uint64() {
  std::uint64_t result = 0;
  const auto error =
      document_->with_current([&](auto& value) { return value.get_uint64().get(result); });
  if (error != simdjson::SUCCESS) fail("isn't a whole number of 64 bits, not negative");
  return result;
}

double Reader::get_double() {
  double result = 0;
  const auto error =
      document_->with_current([&](auto& value) { return value.get_double().get(result); });
  if (error != simdjson::SUCCESS) fail("isn't a number that a double can hold");
  return result;
}

float Reader::get_float() {
  const double wide = get_double();
  // Parsed from its own digits: rounding to a double first and then to a float can be off by one.
  const std::string_view digits =
      document_->with_current([](auto& value) { return std::string_view{value.raw_json_token()}; });
  float result = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result);
  if (error == std::errc{}) return result;
  if (std::abs(wide) > 1) fail("is too large for a float");
  return static_cast<float>(wide);
}

std::string_view Reader::get_string() {
  ondemand::raw_json_string raw;
  const auto error =
      document_->with_current([&](auto& value) { return value.get_raw_json_string().get(raw); });
  if (error != simdjson::SUCCESS) fail("isn't a text");
  return unescape(raw.raw());
}

std::string_view Reader::get_raw() {
  document_->has_unread = true;
  std::string_view raw;
  if (simdjson::to_json_string(document_->current).get(raw) != simdjson::SUCCESS) {
    fail("isn't a value");
  }
  return raw;
}

std::string_view Reader::unescape(const char* raw) const {
  // Always uses the same space, so a document can't exhaust it.
  Document& d = *document_;
  auto* place =
      reinterpret_cast<std::uint8_t*>(d.buffer.data() + d.size + simdjson::SIMDJSON_PADDING);
  const ondemand::raw_json_string text{reinterpret_cast<const std::uint8_t*>(raw)};
  std::string_view unescaped;
  if (d.parser.unescape(text, place).get(unescaped) != simdjson::SUCCESS) {
    fail("has an escape that JSON doesn't have");
  }
  return unescaped;
}

void Reader::fail(std::string_view problem) const {
  throw codec::DecodeError{path().append(1, ' ').append(problem)};
}

void Reader::fail_parsing(int error) const {
  if (error == simdjson::MEMALLOC) throw std::bad_alloc{};
  std::string problem = "isn't valid JSON: ";
  fail(problem.append(simdjson::error_message(static_cast<simdjson::error_code>(error))));
}

std::string Reader::path() const {
  codec::PathText path;
  for (const Document::Level& level : document_->levels) {
    if (level.is_array) {
      if (level.is_begun) path.add_element(level.index);
    } else if (level.member.data() != nullptr) {
      path.add_member(level.member);
    } else if (level.is_begun) {
      path.add_member(codec::unnamed_field(level.index));
    }
  }
  return path.text();
}

}  // namespace stela::json

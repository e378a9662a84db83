#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/json_reader.hpp>

#include <simdjson.h>

#include <cstring>
#include <optional>
#include <vector>

namespace stela::json {

namespace ondemand = simdjson::ondemand;

/// One document and the way down to the current value.
struct Reader::Document {
  struct Level {
    bool is_array = false;
    bool started = false;
    std::size_t index = 0;
    std::string_view member = {};
    ondemand::object object = {};
    ondemand::array array = {};
    ondemand::object_iterator next_member = {};
    ondemand::array_iterator next_element = {};
  };

  ondemand::parser parser;
  std::vector<char> padded;
  std::size_t size = 0;
  ondemand::document root;
  Level root_level;
  std::vector<Level> levels;
  ondemand::value current;

  static std::unique_ptr<Document> take();
  static void give_back(std::unique_ptr<Document> document) noexcept;
};

namespace {

/// Parsers are expensive to make and cheap to keep: each thread keeps a few of them.
thread_local std::vector<std::unique_ptr<void, void (*)(void*)>> unused;

constexpr std::size_t kept_buffer_size = 1024 * 1024;

}  // namespace

std::unique_ptr<Reader::Document> Reader::Document::take() {
  if (unused.empty()) return std::make_unique<Document>();
  std::unique_ptr<Document> document{static_cast<Document*>(unused.back().release())};
  unused.pop_back();
  document->levels.clear();
  return document;
}

void Reader::Document::give_back(std::unique_ptr<Document> document) noexcept try {
  if (unused.size() >= 4 || document->padded.size() > kept_buffer_size) return;
  unused.emplace_back(document.release(), [](void* kept) { delete static_cast<Document*>(kept); });
} catch (...) {
  // Without a place to keep it the document is simply made anew next time.
}

Reader::Reader(std::string_view text) : document_{Document::take()} {
  Document& d = *document_;
  d.size = text.size();
  d.padded.resize(text.size() + simdjson::SIMDJSON_PADDING);
  if (!text.empty()) std::memcpy(d.padded.data(), text.data(), text.size());
  std::memset(d.padded.data() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
  const simdjson::padded_string_view view{d.padded.data(), text.size(), d.padded.size()};
  const auto error = d.parser.iterate(view).get(d.root);
  if (error != simdjson::SUCCESS) fail(simdjson::error_message(error));
}

Reader::~Reader() {
  Document::give_back(std::move(document_));
}

void Reader::open_object() {
  Document& d = *document_;
  Document::Level level;
  const auto error = d.levels.empty() ? d.root.get_object().get(level.object)
                                      : d.current.get_object().get(level.object);
  if (error == simdjson::INCORRECT_TYPE) fail("isn't an object");
  if (error != simdjson::SUCCESS) fail(simdjson::error_message(error));
  if (d.levels.empty()) d.root_level = level;
  d.levels.push_back(level);
}

bool Reader::select(std::string_view name) {
  Document& d = *document_;
  Document::Level& level = d.levels.back();
  level.member = name;
  const auto error = level.object.find_field_unordered(name).get(d.current);
  if (error == simdjson::SUCCESS) return true;
  if (error == simdjson::NO_SUCH_FIELD) return false;
  fail(simdjson::error_message(error));
}

bool Reader::next_member(std::string& name) {
  Document& d = *document_;
  Document::Level& level = d.levels.back();
  if (!level.started) {
    if (level.object.begin().get(level.next_member) != simdjson::SUCCESS) fail("isn't an object");
    level.started = true;
  } else {
    ++level.next_member;
  }
  if (!(level.next_member != ondemand::object_iterator{})) return false;
  ondemand::field field;
  if (const auto error = (*level.next_member).get(field); error != simdjson::SUCCESS) {
    fail(simdjson::error_message(error));
  }
  std::string_view key;
  if (const auto error = field.unescaped_key().get(key); error != simdjson::SUCCESS) {
    fail(simdjson::error_message(error));
  }
  name = key;
  level.member = name;
  d.current = field.value();
  return true;
}

std::size_t Reader::open_array() {
  Document& d = *document_;
  Document::Level level;
  level.is_array = true;
  const auto error = d.levels.empty() ? d.root.get_array().get(level.array)
                                      : d.current.get_array().get(level.array);
  if (error == simdjson::INCORRECT_TYPE) fail("isn't an array");
  if (error != simdjson::SUCCESS) fail(simdjson::error_message(error));
  std::size_t count = 0;
  if (const auto failed = level.array.count_elements().get(count); failed != simdjson::SUCCESS) {
    fail(simdjson::error_message(failed));
  }
  if (d.levels.empty()) d.root_level = level;
  d.levels.push_back(level);
  return count;
}

bool Reader::next_element() {
  Document& d = *document_;
  Document::Level& level = d.levels.back();
  if (!level.started) {
    if (level.array.begin().get(level.next_element) != simdjson::SUCCESS) fail("isn't an array");
    level.started = true;
  } else {
    ++level.next_element;
    ++level.index;
  }
  if (!(level.next_element != ondemand::array_iterator{})) return false;
  if (const auto error = (*level.next_element).get(d.current); error != simdjson::SUCCESS) {
    fail(simdjson::error_message(error));
  }
  return true;
}

void Reader::close() {
  document_->levels.pop_back();
}

void Reader::finish() {
  Document::Level& root = document_->root_level;
  std::string_view read;
  const auto error =
      root.is_array ? root.array.raw_json().get(read) : root.object.raw_json().get(read);
  if (error != simdjson::SUCCESS) fail(simdjson::error_message(error));
  const char* const end = document_->padded.data() + document_->size;
  for (const char* rest = read.data() + read.size(); rest < end; ++rest) {
    if (std::strchr(" \t\r\n", *rest) == nullptr) fail("has something behind its end");
  }
}

bool Reader::is_null() {
  bool null = false;
  if (simdjson::simdjson_result<bool>{document_->current.is_null()}.get(null) !=
      simdjson::SUCCESS) {
    fail("isn't a value");
  }
  return null;
}

bool Reader::get_bool() {
  bool value = false;
  if (document_->current.get_bool().get(value) != simdjson::SUCCESS) fail("isn't true or false");
  return value;
}

std::int64_t Reader::get_int64() {
  std::int64_t value = 0;
  if (document_->current.get_int64().get(value) != simdjson::SUCCESS) {
    fail("isn't a whole number of 64 bits");
  }
  return value;
}

std::uint64_t Reader::get_uint64() {
  std::uint64_t value = 0;
  if (document_->current.get_uint64().get(value) != simdjson::SUCCESS) {
    fail("isn't a whole number of 64 bits, not negative");
  }
  return value;
}

double Reader::get_double() {
  double value = 0;
  if (document_->current.get_double().get(value) != simdjson::SUCCESS) fail("isn't a number");
  return value;
}

std::string_view Reader::get_string() {
  std::string_view value;
  if (document_->current.get_string().get(value) != simdjson::SUCCESS) fail("isn't a text");
  return value;
}

std::string_view Reader::get_raw() {
  std::string_view raw;
  if (simdjson::to_json_string(document_->current).get(raw) != simdjson::SUCCESS) {
    fail("isn't a value");
  }
  return raw;
}

void Reader::fail(std::string_view problem) const {
  std::string path;
  for (const Document::Level& level : document_->levels) {
    if (level.is_array) {
      path += '[' + std::to_string(level.index) + ']';
    } else {
      if (!path.empty()) path += '.';
      path += level.member;
    }
  }
  if (path.empty()) path = "the payload";
  throw codec::DecodeError{path + ' ' + std::string{problem}};
}

void Reader::fail_missing(std::string_view name) const {
  document_->levels.back().member = name;
  fail("is missing");
}

}  // namespace stela::json

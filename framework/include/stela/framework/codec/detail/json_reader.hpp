// Reads JSON for the decoding archive. Its parser isn't visible in the headers.
#pragma once

#include <stela/framework/export.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stela::json {

/// Walks through a JSON document. There is always a current value. Opening an object or array, and
/// selecting a member or element, makes another value current. `close` goes back up. Any mismatch
/// throws codec::DecodeError with the path of the value. Threads: one at a time.
class STELA_FRAMEWORK_EXPORT Reader {
 public:
  /// The root becomes the current value. `text` is copied.
  explicit Reader(std::string_view text);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void open_object();
  /// Makes the member `name` of the open object the current value. False if it is missing.
  bool select(std::string_view name);
  /// As `select`, for the field with this number and no name, which cereal calls "value0".
  bool select_unnamed(std::size_t number);
  /// Makes the next member in document order current and sets its name. False at the end.
  bool next_member(std::string& name);

  /// Opens the current value as an array and returns how many elements it has.
  std::size_t open_array();
  /// Makes the next element current; false at the end.
  bool next_element();

  /// Leaves the innermost open object or array. DecodeError if members of an object were selected
  /// by name and two of them have the same one.
  void close();
  /// Checks the skipped parts: unread members must be valid JSON, and nothing may follow the root.
  void finish();

  bool is_null();
  bool get_bool();
  std::int64_t get_int64();
  std::uint64_t get_uint64();
  double get_double();
  float get_float();
  /// Valid until the next text is read.
  std::string_view get_string();
  /// The raw text of the current value in the document, unparsed.
  std::string_view get_raw();

  /// Throws DecodeError: "<path> <problem>".
  [[noreturn]] void fail(std::string_view problem) const;
  /// The path of the current value: "lines[1].price".
  std::string path() const;

 private:
  struct Document;
  [[noreturn]] void fail_parsing(int error) const;
  std::string_view unescape(const char* raw) const;
  std::unique_ptr<Document> document_;
};

}  // namespace stela::json

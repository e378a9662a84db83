// Reads JSON for the decoding archive, on top of a parser that stays out of the headers.
#pragma once

#include <stela/framework/export.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace stela::json {

/// Walks through one JSON document. At any time there is a current value; opening an object or an
/// array and choosing a member makes another one current, until `close` goes back up.
/// Everything that doesn't fit throws codec::DecodeError with the path of the value.
/// Threads: one at a time.
class STELA_FRAMEWORK_EXPORT Reader {
 public:
  /// The root is the current value. `text` is copied.
  explicit Reader(std::string_view text);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void open_object();
  /// Makes the member `name` of the open object the current value; false if there is none.
  bool select(std::string_view name);
  /// As `select`, for the name that cereal gives the field `number` without a name: "value0".
  bool select_unnamed(std::size_t number);
  /// Makes the next member in document order current and writes its name; nothing is left: false.
  bool next_member(std::string& name);

  /// Opens the current value as an array and returns how many elements it has.
  std::size_t open_array();
  /// Makes the next element current; false at the end.
  bool next_element();

  /// Leaves the innermost open object or array. An object that was selected from must not have two
  /// members of one name.
  void close();
  /// Checks what was skipped: members that nobody asked for are JSON all the same, and nothing
  /// stands behind the root.
  void finish();

  bool is_null();
  bool get_bool();
  std::int64_t get_int64();
  std::uint64_t get_uint64();
  double get_double();
  float get_float();
  /// Valid until the next text is read.
  std::string_view get_string();
  /// The current value's own text as it stands in the document, without a look inside.
  std::string_view get_raw();

  /// Throws DecodeError: "<path> <problem>".
  [[noreturn]] void fail(std::string_view problem) const;
  /// Where the current value is: "lines[1].price".
  std::string path() const;

 private:
  struct Document;
  [[noreturn]] void fail_parsing(int error) const;
  std::string_view unescape(const char* raw) const;
  std::unique_ptr<Document> document_;
};

}  // namespace stela::json

// cereal archives for plain JSON. A user's `serialize` is called with one of them. json_values.hpp
// says how each kind of value is written.
#pragma once

#include <stela/framework/codec/codec_error.hpp>
#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/codec/detail/sealing.hpp>
#include <stela/framework/codec/detail/shapes.hpp>

#include <cereal/cereal.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::json {

/// How deeply objects and arrays may be nested.
inline constexpr std::size_t max_depth = 128;

/// Threads: one at a time.
class OutputArchive : public cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision>,
                      public cereal::traits::TextArchive {
 public:
  /// Appends to `out`, which must outlive the archive.
  explicit OutputArchive(std::string& out, codec::Sealing* sealing = nullptr)
      : cereal::OutputArchive<OutputArchive, cereal::AllowEmptyClassElision>{this},
        out_{out},
        personal_{sealing} {
    nodes_.reserve(8);
  }

  /// The name must stay valid until its value begins.
  void set_next_name(std::string_view name) noexcept { next_name_ = name; }

  void begin_node() {
    begin_value();
    if (nodes_.size() == max_depth) fail("is nested more than 128 levels deep");
    nodes_.push_back({});
  }
  void make_object() { make(Kind::object, '{'); }
  void make_array() { make(Kind::array, '['); }
  void end_node() {
    if (nodes_.back().kind == Kind::unopened) make_object();
    out_ += nodes_.back().kind == Kind::array ? ']' : '}';
    nodes_.pop_back();
  }

  /// Writes the comma and the name before a value.
  void begin_value() {
    if (std::exchange(begun_, false) || nodes_.empty()) return;
    Node& parent = nodes_.back();
    if (parent.kind == Kind::unopened) make_object();
    if (parent.count++ != 0) out_ += ',';
    if (parent.kind == Kind::array) return;
    begin_member(parent, std::exchange(next_name_, {}));
    out_ += ':';
  }

  /// As begin_value, for a value that is also the subject of the next begin_value.
  void begin_forwarded_value() {
    begin_value();
    begun_ = true;
  }

  std::string& out() noexcept { return out_; }

  codec::PersonalWriter& personal() noexcept { return personal_; }

  /// Throws EncodeError: "<path> <problem>".
  [[noreturn]] void fail(std::string_view problem) const {
    throw codec::EncodeError{path().append(1, ' ').append(problem)};
  }

  void finish() const noexcept {}

  /// The archive's position in the value.
  std::string path() const {
    codec::PathText path;
    for (const Node& node : nodes_) {
      if (node.kind == Kind::array) {
        path.add_element(node.count - 1);
      } else if (node.name_begin > 0) {
        path.add_member(unescaped(std::string_view{out_}.substr(node.name_begin, node.name_size)));
      }
    }
    return path.text();
  }

 private:
  enum class Kind : std::uint8_t { unopened, object, array };
  struct Node {
    Kind kind = Kind::unopened;
    std::size_t count = 0;
    std::size_t unnamed = 0;
    bool is_versioned = false;
    /// Where the member's name begins in the text. The name itself may be gone when an exception
    /// has passed through and a path is wanted.
    std::size_t name_begin = 0;
    std::size_t name_size = 0;
  };

  /// As a reader sees the name.
  static std::string unescaped(std::string_view name) {
    if (name.find('\\') == std::string_view::npos) return std::string{name};
    Reader reader{std::string{'"'}.append(name).append(1, '"')};
    return std::string{reader.get_string()};
  }

  void begin_member(Node& object, std::string_view name) {
    const std::size_t begin = out_.size() + 1;
    bool is_text = true;
    if (name.data() == nullptr) {
      out_ += '"';
      out_ += codec::unnamed_field(object.unnamed++);
      out_ += '"';
    } else {
      is_text = try_append_string(out_, name);
      if (!is_text) out_.replace(begin - 1, std::string::npos, "\"(a name)\"");
    }
    object.name_begin = begin;
    object.name_size = out_.size() - begin - 1;
    if (!is_text) fail("isn't valid UTF-8");
    if (name == "cereal_class_version" && std::exchange(object.is_versioned, true)) {
      fail("is needed twice, for a class and for its base; give one of them no class version");
    }
  }

  void make(Kind kind, char bracket) {
    if (nodes_.back().kind != Kind::unopened) return;
    nodes_.back().kind = kind;
    out_ += bracket;
  }

  std::string& out_;
  std::vector<Node> nodes_;
  std::string_view next_name_;
  bool begun_ = false;
  codec::PersonalWriter personal_;
};

/// Threads: one at a time.
class InputArchive : public cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision>,
                     public cereal::traits::TextArchive {
 public:
  /// `text` is copied.
  explicit InputArchive(std::string_view text, const codec::Opening* opening = nullptr)
      : cereal::InputArchive<InputArchive, cereal::AllowEmptyClassElision>{this},
        reader_{text},
        personal_{opening} {
    nodes_.reserve(8);
  }

  /// The name must stay valid until its value is read.
  void set_next_name(std::string_view name) noexcept { next_name_ = name; }

  void begin_node() {
    begin_value();
    if (nodes_.size() == max_depth) reader_.fail("is nested more than 128 levels deep");
    nodes_.push_back({});
  }
  std::size_t make_array() {
    nodes_.back().kind = Kind::array;
    return reader_.open_array();
  }
  void make_object() {
    if (nodes_.back().kind != Kind::unopened) return;
    nodes_.back().kind = Kind::object;
    reader_.open_object();
  }
  void end_node() {
    if (nodes_.back().kind == Kind::unopened) make_object();
    nodes_.pop_back();
    reader_.close();
  }

  /// Makes the value of the next load the reader's current one.
  void begin_value() {
    if (!find_value()) reader_.fail("is missing");
  }
  /// As begin_value, but returns false if there is no such member.
  bool find_value() {
    if (std::exchange(found_, false) || nodes_.empty()) return true;
    Node& parent = nodes_.back();
    if (parent.kind == Kind::array) {
      if (!reader_.next_element()) reader_.fail("has fewer elements than expected");
      return true;
    }
    make_object();
    const std::string_view name = std::exchange(next_name_, {});
    return name.data() != nullptr ? reader_.select(name) : reader_.select_unnamed(parent.unnamed++);
  }
  /// The next begin_value keeps the current value.
  void keep_value() noexcept { found_ = true; }

  void finish() { reader_.finish(); }

  /// The archive's position in the document.
  std::string path() const { return reader_.path(); }

  // cereal passes archives to load_minimal as const.
  Reader& reader() const noexcept { return reader_; }

  codec::PersonalReader& personal() noexcept { return personal_; }

 private:
  enum class Kind : std::uint8_t { unopened, object, array };
  struct Node {
    Kind kind = Kind::unopened;
    std::size_t unnamed = 0;
  };

  mutable Reader reader_;
  std::vector<Node> nodes_;
  std::string_view next_name_;
  bool found_ = false;
  codec::PersonalReader personal_;
};

}  // namespace stela::json

CEREAL_SETUP_ARCHIVE_TRAITS(stela::json::InputArchive, stela::json::OutputArchive)

namespace stela::json {

// How a value of type T is framed. Types that only forward to other values (a named pair, a size,
// an optional, a type with a minimal form) have no frame of their own. Scalars are written as they
// are. Everything else is an object or an array.
template <class T>
constexpr bool is_minimal =
    cereal::traits::has_minimal_output_serialization<T, OutputArchive>::value;

template <class T>
constexpr bool is_forwarding = codec::is_transparent<T> || is_minimal<T> || codec::is_personal<T>;

template <class T>
constexpr bool is_scalar =
    std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::nullptr_t> || codec::is_time<T> || codec::is_bitset<T>;

template <class T>
constexpr bool is_node = !is_forwarding<T> && !is_scalar<T>;

template <class T>
void prologue(OutputArchive& archive, [[maybe_unused]] const T& value) {
  codec::check_value<cereal::traits::is_output_serializable<T, OutputArchive>::value, T>();
  if constexpr (std::is_enum_v<T>) static_assert(codec::check_enum<T>());
  if constexpr (is_node<T>) {
    archive.begin_node();
    if constexpr (codec::is_fixed_array<T>) archive.make_array();
    if constexpr (stela::detail::HasSubject<T>) {
      archive.personal().enter(stela::detail::OpenObject::of(value));
    }
  } else if constexpr (is_scalar<T>) {
    archive.begin_value();
  } else if constexpr (is_minimal<T> || codec::is_personal<T>) {
    archive.begin_forwarded_value();  // already here, so that save_minimal fails with its path
  }
}
template <class T>
void epilogue(OutputArchive& archive, const T&) {
  if constexpr (is_node<T>) {
    archive.end_node();
    if constexpr (stela::detail::HasSubject<T>) archive.personal().leave();
  }
}

template <class T>
void begin_load(InputArchive& archive) {
  codec::check_value<cereal::traits::is_input_serializable<T, InputArchive>::value, T>();
  if constexpr (is_node<T>) {
    archive.begin_node();
    if constexpr (codec::is_fixed_array<T>) {
      if (archive.make_array() != codec::fixed_array_size<T>) {
        archive.reader().fail("has another number of elements than expected");
      }
    }
  } else if constexpr (is_scalar<T>) {
    archive.begin_value();
  }
}
// Two overloads, because cereal passes values that aren't initialised yet: a reference to const
// would count as reading them.
template <class T>
void prologue(InputArchive& archive, const T&) {
  begin_load<T>(archive);
}
template <class T>
requires(!std::is_const_v<T>) void prologue(InputArchive& archive, T&) {
  begin_load<T>(archive);
}
template <class T>
void epilogue(InputArchive& archive, const T&) {
  if constexpr (is_node<T>) archive.end_node();
}

}  // namespace stela::json

#include <stela/framework/codec/detail/json_values.hpp>

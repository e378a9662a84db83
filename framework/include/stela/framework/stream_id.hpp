// Names of streams: readable, reversible, and typed per aggregate.
#pragma once

#include <stela/framework/error.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/uuid.hpp>

#include <compare>
#include <functional>
#include <string>
#include <string_view>

namespace stela {

/// The name of a stream, "<category>-<key>".
///
/// category: 1 to 64 characters of a-z, 0-9 and _, the first a letter. It has no dash, so it ends
/// at the first dash of a name, and every name can be split again. key: 1 to 190 bytes of UTF-8
/// without control characters and spaces: a UUID, an e-mail address, a number. A StreamId that was
/// moved from is empty, and can't be appended to.
class STELA_FRAMEWORK_EXPORT StreamId {
 public:
  static constexpr std::size_t max_category_size = 64;
  static constexpr std::size_t max_key_size = 190;

  /// Both throw UsageError, which names the rule that the text breaks.
  static StreamId of(std::string_view category, std::string_view key);
  static StreamId parse(std::string_view name);

  const std::string& name() const noexcept { return name_; }
  std::string_view category() const noexcept {
    return std::string_view{name_}.substr(0, category_size_);
  }
  std::string_view key() const noexcept {
    return name_.empty() ? std::string_view{} : std::string_view{name_}.substr(category_size_ + 1);
  }

  friend bool operator==(const StreamId& a, const StreamId& b) noexcept {
    return a.name_ == b.name_;
  }
  friend auto operator<=>(const StreamId& a, const StreamId& b) noexcept {
    return a.name_ <=> b.name_;
  }

 private:
  StreamId(std::string name, std::size_t category_size) noexcept
      : name_{std::move(name)}, category_size_{category_size} {}

  std::string name_;
  std::size_t category_size_;
};

/// True if `text` can be a category. Also usable at compile time.
constexpr bool is_valid_category(std::string_view text) noexcept {
  if (text.empty() || text.size() > StreamId::max_category_size) return false;
  if (text[0] < 'a' || text[0] > 'z') return false;
  for (const char c : text) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

/// UsageError, which names the rule, if `key` can't be the key of a stream name.
STELA_FRAMEWORK_EXPORT void check_stream_key(std::string_view key);

/// The id of one aggregate of type `A`. It can't be mixed with ids of other aggregates, and can be
/// a field of an event.
template <class A>
class Id {
 public:
  /// For deserialisation: an id that names nothing yet.
  Id() = default;

  /// A new UUIDv7.
  static Id generate() { return Id{make_uuid().to_string()}; }

  /// From any key that makes a valid stream name; otherwise UsageError.
  static Id from(std::string_view key) {
    return Id{std::string{StreamId::of(A::category, key).key()}};
  }

  /// The id of the aggregate with this stream. UsageError if the stream has another category.
  static Id of(const StreamId& stream) {
    if (stream.category() != A::category) {
      throw UsageError{"stream '" + stream.name() + "' isn't of category '" +
                       std::string{A::category} + "'"};
    }
    return Id{std::string{stream.key()}};
  }

  const std::string& key() const noexcept { return key_; }
  StreamId stream() const { return StreamId::of(A::category, key_); }
  // NOLINTNEXTLINE: an id stands for its stream wherever one is asked for.
  operator StreamId() const { return stream(); }

  friend bool operator==(const Id&, const Id&) = default;
  friend auto operator<=>(const Id&, const Id&) = default;

  template <class Archive>
  std::string save_minimal(const Archive&) const {
    return key_;
  }
  template <class Archive>
  void load_minimal(const Archive&, const std::string& key) {
    if (!key.empty()) check_stream_key(key);
    key_ = key;
  }

 private:
  explicit Id(std::string key) noexcept : key_{std::move(key)} {}
  std::string key_;
};

}  // namespace stela

template <>
struct std::hash<stela::StreamId> {
  std::size_t operator()(const stela::StreamId& id) const noexcept {
    return std::hash<std::string>{}(id.name());
  }
};

template <class A>
struct std::hash<stela::Id<A>> {
  std::size_t operator()(const stela::Id<A>& id) const noexcept {
    return std::hash<std::string>{}(id.key());
  }
};

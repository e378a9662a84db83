// How personal fields are written and read. docs/payload-sealed.md describes the format.
#pragma once

#include <stela/framework/codec/detail/subject.hpp>
#include <stela/framework/export.hpp>
#include <stela/framework/key_id.hpp>
#include <stela/framework/uuid.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stela::codec {

/// The place of a sealed field. The field is bound to it and opens nowhere else.
struct STELA_FRAMEWORK_EXPORT Place {
  enum class Kind : std::uint8_t { event = 1, snapshot = 2, timer = 3 };

  static Place of_event(const EventId& id);
  static Place of_snapshot(const StreamId& stream, int state_version);
  static Place of_timer(std::string_view process, std::string_view key, std::string_view kind,
                        int version);

  Kind kind = Kind::event;
  std::string bytes = {};
};

/// How the personal fields of one payload are written. Threads: one at a time.
struct Sealing {
  enum class Show : std::uint8_t {
    /// As "(personal)": for encoding a value without storing it.
    masked,
    /// The values themselves: for the test kit and for comparing values.
    clear,
    sealed,
    /// Refused: the value is inside another personal value.
    refused,
  };

  Show show = Show::masked;
  /// Null: personal fields can't be sealed.
  Keyring* keys = nullptr;
  Place place = {};
  /// The stream that the payload belongs to.
  const StreamId* stream = nullptr;
  /// The keys that were used, each once, and the highest of their numbers.
  std::vector<KeyId> used = {};
  std::int64_t newest = 0;
  /// A field needed a key, but there were no keys.
  bool lacked_keys = false;
};

/// How the personal fields of one payload are read. Without keys they stay sealed.
struct Opening {
  Keyring* keys = nullptr;
  Place place = {};
  /// The test kit wrote them in clear.
  bool is_clear = false;
};

/// The personal fields of the value that an archive writes. Threads: one at a time.
class STELA_FRAMEWORK_EXPORT PersonalWriter {
 public:
  explicit PersonalWriter(Sealing* sealing) noexcept : sealing_{sealing} {}

  Sealing::Show show() const noexcept {
    return sealing_ == nullptr ? Sealing::Show::masked : sealing_->show;
  }
  void enter(const stela::detail::OpenObject& object) { open_.push_back(object); }
  void leave() noexcept { open_.pop_back(); }

  /// The number of the next personal field in the payload.
  std::string next_number() { return std::to_string(fields_++); }
  /// The innermost object that declares a subject, and that has this type unless `type` is null.
  /// EncodeError if there is none.
  const stela::detail::OpenObject& object(const char* type, std::string_view field) const;
  Sealing& sealing() noexcept { return *sealing_; }

 private:
  Sealing* sealing_;
  std::vector<stela::detail::OpenObject> open_;
  std::uint64_t fields_ = 0;
};

/// The counterpart of PersonalWriter in a reading archive.
class PersonalReader {
 public:
  explicit PersonalReader(const Opening* opening) noexcept : opening_{opening} {}

  const Opening* opening() const noexcept { return opening_; }
  bool is_clear() const noexcept { return opening_ != nullptr && opening_->is_clear; }
  std::string next_number() { return std::to_string(fields_++); }

 private:
  const Opening* opening_;
  std::uint64_t fields_ = 0;
};

}  // namespace stela::codec

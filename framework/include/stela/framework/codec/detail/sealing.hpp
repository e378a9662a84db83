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

/// What a sealed field is bound to, so that it opens nowhere else.
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
    /// "(personal)": for whoever encodes a value without a place to store it.
    masked,
    /// The values themselves: for the test kit, and to compare values.
    clear,
    sealed,
    /// Not at all: inside another one.
    refused,
  };

  Show show = Show::masked;
  /// Null: a personal field can't be sealed.
  Keyring* keys = nullptr;
  Place place = {};
  /// What the payload belongs to.
  const StreamId* stream = nullptr;
  /// The keys that were used, each once, and the highest of their numbers.
  std::vector<KeyId> used = {};
  std::int64_t newest = 0;
  /// There were none, and a field needed one.
  bool lacked_keys = false;
};

/// How the personal fields of one payload are read. Without keys they stay sealed.
struct Opening {
  Keyring* keys = nullptr;
  Place place = {};
  /// They were written in clear, by the test kit.
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

  /// The number of the field among the payload's.
  std::string next_number() { return std::to_string(fields_++); }
  /// The innermost object that declares a subject; of this type, unless it is null. EncodeError if
  /// there is none.
  const stela::detail::OpenObject& object(const char* type, std::string_view field) const;
  Sealing& sealing() noexcept { return *sealing_; }

 private:
  Sealing* sealing_;
  std::vector<stela::detail::OpenObject> open_;
  std::uint64_t fields_ = 0;
};

/// Its counterpart in an archive that reads.
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

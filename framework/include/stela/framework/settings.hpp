// Descriptions of the members of an options struct: name, range and meaning. Range checks,
// configuration files and their reference are generated from them.
#pragma once

#include <stela/framework/export.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace stela {

/// The value of a setting. A choice is a text.
using SettingValue =
    std::variant<bool, std::int64_t, double, std::chrono::milliseconds, std::string>;

/// The allowed range: numbers, milliseconds of a duration, or bytes of a text.
struct SettingRange {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
/// Above 0, and at most a year.
inline constexpr SettingRange some_time{1, std::int64_t{365} * 24 * 3'600'000};

/// A setting, independent of its struct.
struct SettingFacts {
  enum class Kind : std::uint8_t { flag, integer, number, duration, text, choice };

  std::string_view name;
  std::string_view summary;
  Kind kind = Kind::text;
  SettingRange range = {};
  /// For a choice: "park|stop|skip", in the order of the enumeration.
  std::string_view choices = {};
  /// The default of an optional member.
  std::string_view unset = {};
};

/// "1 to 10000", "above 0, and at most 8760 h".
STELA_FRAMEWORK_EXPORT std::string range_of(const SettingFacts& setting);
/// True if `value` is in the setting's range. It must be of the setting's kind.
STELA_FRAMEWORK_EXPORT bool allows(const SettingFacts& setting, const SettingValue& value);
/// UsageError, "batch_size is 0; it must be 1 to 10000", unless `value` is allowed.
STELA_FRAMEWORK_EXPORT void check(const SettingFacts& setting, const SettingValue& value);

template <class Options>
struct Setting : SettingFacts {
  /// Empty if the member is an optional that isn't set.
  std::optional<SettingValue> (*get)(const Options&);
  void (*set)(Options&, const SettingValue&);
};

/// UsageError for the first value that is out of range.
template <class Options>
void check_ranges(std::span<const Setting<Options>> settings, const Options& options) {
  for (const Setting<Options>& setting : settings) {
    if (const auto value = setting.get(options)) check(setting, *value);
  }
}

namespace detail {

template <class T>
constexpr SettingFacts::Kind kind_of_setting() {
  using Kind = SettingFacts::Kind;
  if constexpr (std::same_as<T, bool>) return Kind::flag;
  if constexpr (std::integral<T>) return Kind::integer;
  if constexpr (std::floating_point<T>) return Kind::number;
  if constexpr (std::convertible_to<T, std::string_view>) return Kind::text;
  return std::is_enum_v<T> ? Kind::choice : Kind::duration;
}

/// Converts a member of type T to and from a SettingValue.
template <class T>
struct SettingMember {
  static constexpr SettingFacts::Kind kind = kind_of_setting<T>();

  static std::optional<SettingValue> get(const T& member) {
    if constexpr (kind == SettingFacts::Kind::choice) {
      return std::string{to_string(member)};
    } else if constexpr (kind == SettingFacts::Kind::duration) {
      return std::chrono::duration_cast<std::chrono::milliseconds>(member);
    } else if constexpr (kind == SettingFacts::Kind::integer) {
      return std::int64_t{member};
    } else {
      return member;
    }
  }
  static void set(T& member, const SettingValue& value) {
    if constexpr (kind == SettingFacts::Kind::choice) {
      const auto& name = std::get<std::string>(value);
      for (int i = 0; to_string(member) != name && i < 16; ++i) member = static_cast<T>(i);
    } else if constexpr (kind == SettingFacts::Kind::duration) {
      member = std::chrono::duration_cast<T>(std::get<std::chrono::milliseconds>(value));
    } else if constexpr (kind == SettingFacts::Kind::integer) {
      member = static_cast<T>(std::get<std::int64_t>(value));
    } else {
      member = std::get<T>(value);
    }
  }
};

template <class T>
struct SettingMember<std::optional<T>> {
  static constexpr SettingFacts::Kind kind = SettingMember<T>::kind;

  static std::optional<SettingValue> get(const std::optional<T>& member) {
    return member ? SettingMember<T>::get(*member) : std::nullopt;
  }
  static void set(std::optional<T>& member, const SettingValue& value) {
    member.emplace();
    SettingMember<T>::set(*member, value);
  }
};

template <class>
struct MemberPointer;
template <class Owner, class T>
struct MemberPointer<T Owner::*> {
  using OwnerType = Owner;
};

}  // namespace detail

/// Properties that only some settings have.
struct SettingLimits {
  SettingRange range = {};
  std::string_view choices = {};
  std::string_view unset = {};
};

/// Describes a member of the options, `&RelayOptions::window`, or a member of a member,
/// `&PublisherOptions::tls, &Tls::ca_file`.
template <auto first, auto... further>
constexpr auto setting(std::string_view name, std::string_view summary,
                       const SettingLimits& limits = {}) {
  using Options = typename detail::MemberPointer<decltype(first)>::OwnerType;
  using Member = detail::SettingMember<
      std::remove_cvref_t<decltype(((std::declval<Options&>().*first).*....*further))>>;
  return Setting<Options>{
      {name, summary, Member::kind, limits.range, limits.choices, limits.unset},
      [](const Options& options) { return Member::get(((options.*first).*....*further)); },
      [](Options& options, const SettingValue& value) {
        Member::set(((options.*first).*....*further), value);
      }};
}

}  // namespace stela

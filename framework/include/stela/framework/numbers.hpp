// Positions in streams and in the store, as separate types.
#pragma once

#include <stela/framework/export.hpp>

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace stela {

namespace detail {

/// A whole number that can't be mixed with numbers of another meaning.
template <class Tag>
class Number {
 public:
  constexpr Number() = default;
  constexpr explicit Number(std::int64_t value) noexcept : value_{value} {}

  constexpr std::int64_t value() const noexcept { return value_; }
  constexpr Number next() const noexcept { return Number{value_ + 1}; }

  static constexpr Number max() noexcept {
    return Number{std::numeric_limits<std::int64_t>::max()};
  }

  // NOLINTNEXTLINE(modernize-use-nullptr): it takes what the compiler writes for ours
  friend constexpr auto operator<=>(Number, Number) = default;

 private:
  std::int64_t value_ = 0;
};

}  // namespace detail

/// A position in one stream. The first event has version 1; 0 is an empty stream.
using StreamVersion = detail::Number<struct StreamVersionTag>;

/// A position in the whole store, in commit order and without gaps, from 1 on.
using GlobalSequence = detail::Number<struct GlobalSequenceTag>;

/// The requirement of an append on its stream's version.
class STELA_FRAMEWORK_EXPORT ExpectedVersion {
 public:
  /// Any version: append after the existing events.
  static constexpr ExpectedVersion any() noexcept { return ExpectedVersion{-1}; }
  /// The stream must not have events yet.
  static constexpr ExpectedVersion none() noexcept { return ExpectedVersion{0}; }
  /// The stream must be at exactly this version. UsageError if it is negative.
  static ExpectedVersion exactly(StreamVersion version);

  constexpr bool is_any() const noexcept { return value_ < 0; }
  constexpr bool allows(StreamVersion actual) const noexcept {
    return is_any() || actual.value() == value_;
  }

  /// Empty if any version will do; 0 if the stream must not have events yet.
  constexpr std::optional<StreamVersion> version() const noexcept {
    return is_any() ? std::nullopt : std::optional{StreamVersion{value_}};
  }

  /// In words: "any version", "no stream", "version 3".
  std::string describe() const;

  friend constexpr bool operator==(ExpectedVersion, ExpectedVersion) = default;

 private:
  constexpr explicit ExpectedVersion(std::int64_t value) noexcept : value_{value} {}
  std::int64_t value_;
};

}  // namespace stela

template <class Tag>
struct std::hash<stela::detail::Number<Tag>> {
  std::size_t operator()(stela::detail::Number<Tag> number) const noexcept {
    return std::hash<std::int64_t>{}(number.value());
  }
};

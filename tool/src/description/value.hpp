// The value of a field of any type.
#pragma once

#include <stela/framework/clock.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace stela::tool {

/// The meaning of a value, which decides how it is written.
enum class Kind : std::uint8_t {
  text,
  /// A state: "no reader" for people, no_reader in JSON.
  word,
  /// Text from outside. Control characters are escaped, in JSON as well.
  untrusted,
  flag,
  /// An id or a position: "12345".
  number,
  /// A quantity: "12,345".
  count,
  bytes,
  real,
  /// Seconds in JSON; "3.2 s" for people.
  duration,
  time,
  /// A list or another object.
  json,
};

/// Finished JSON.
struct Json {
  std::string text;
};

template <class T>
concept Numbered = requires(const T& value) {
  { value.value() } -> std::same_as<std::int64_t>;
};
template <class T>
concept Labelled = requires(const T& value) {
  { value.label() } -> std::convertible_to<std::string>;
};
template <class T>
concept Named = requires(const T& value) {
  { value.name() } -> std::convertible_to<std::string_view>;
};
template <class T>
concept Printable = requires(const T& value) {
  { value.to_string() } -> std::convertible_to<std::string>;
};

/// A value, or nothing. The types of members convert to it.
class Value {
 public:
  using Data = std::variant<std::monostate, bool, std::int64_t, double, std::string, Timestamp,
                            std::chrono::microseconds, Json>;

  Value() = default;
  Value(std::string text) : data_{std::move(text)} {}
  Value(std::string_view text) : data_{std::string{text}} {}
  Value(const char* text) : data_{std::string{text}} {}
  Value(double number) : data_{number} {}
  Value(Timestamp time) : data_{time} {}
  Value(std::chrono::microseconds duration) : data_{duration} {}
  Value(Json json) : data_{std::move(json)} {}
  Value(std::integral auto number) {
    if constexpr (std::same_as<decltype(number), bool>) {
      data_ = number;
    } else {
      data_ = static_cast<std::int64_t>(number);
    }
  }
  Value(const Numbered auto& value) : data_{value.value()} {}
  template <class Enum>
  requires std::is_enum_v<Enum> Value(Enum choice) : data_{std::string{to_string(choice)}} {}
  Value(const Labelled auto& value) : data_{value.label()} {}
  Value(const Named auto& value) : data_{std::string{value.name()}} {}
  Value(const Printable auto& value) : data_{value.to_string()} {}
  template <class T>
  Value(const std::optional<T>& value) : data_{value ? Value{*value}.data_ : Data{}} {}

  bool is_nothing() const noexcept { return data_.index() == 0; }
  const Data& data() const noexcept { return data_; }
  /// For metrics: durations in seconds, 1 for true, 0 for texts and missing values.
  double as_number() const noexcept;

 private:
  Data data_;
};

/// The kind of a type, unless a field says otherwise.
template <class T>
constexpr Kind natural_kind() {
  if constexpr (std::same_as<T, bool>) return Kind::flag;
  if constexpr (std::integral<T> || Numbered<T>) return Kind::number;
  if constexpr (std::same_as<T, double>) return Kind::real;
  if constexpr (std::same_as<T, Timestamp>) return Kind::time;
  if constexpr (std::same_as<T, std::chrono::microseconds>) return Kind::duration;
  if constexpr (std::same_as<T, Json>) return Kind::json;
  if constexpr (requires(const T& value) { value.value_or(*value); }) {
    return natural_kind<typename T::value_type>();
  }
  return Kind::text;
}

}  // namespace stela::tool

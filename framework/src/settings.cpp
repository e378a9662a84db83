#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/error.hpp>
#include <stela/framework/settings.hpp>

#include <algorithm>
#include <cmath>

namespace stela {
namespace {

using Kind = SettingFacts::Kind;
using std::chrono::milliseconds;

constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();

std::string in_words(Kind kind, std::int64_t number) {
  if (kind == Kind::text) return std::to_string(number) + " bytes";
  if (kind != Kind::duration) return std::to_string(number);
  constexpr std::int64_t hour = 3'600'000;
  return number > 0 && number % hour == 0 ? std::to_string(number / hour) + " h"
                                          : std::to_string(number) + " ms";
}

/// The number that the range limits. For a text, that is its length.
std::int64_t number_in(const SettingValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* time = std::get_if<milliseconds>(&value)) return time->count();
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? static_cast<std::int64_t>(text->size()) : 0;
}

bool is_among(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const std::size_t bar = std::min(choices.find('|'), choices.size());
    if (choices.substr(0, bar) == text) return true;
    choices.remove_prefix(std::min(bar + 1, choices.size()));
  }
  return false;
}

std::string text_of(const SettingFacts& setting, const SettingValue& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    if (!std::isfinite(*number)) return "not a number";
    std::string text;
    json::append_double(text, *number);
    return text;
  }
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr && setting.kind == Kind::choice ? *text
                                                         : in_words(setting.kind, number_in(value));
}

}  // namespace

std::string range_of(const SettingFacts& setting) {
  const auto [least, most] = setting.range;
  if (setting.kind == Kind::choice) return "one of " + std::string{setting.choices};
  if (setting.kind == Kind::text) {
    return most == no_end ? "a text" : "at most " + in_words(setting.kind, most);
  }
  if (setting.kind == Kind::duration && least == 1) {
    return most == no_end ? "above 0" : "above 0, and at most " + in_words(setting.kind, most);
  }
  const std::string begin = in_words(setting.kind, least);
  return most == no_end ? begin + " or more" : begin + " to " + in_words(setting.kind, most);
}

bool allows(const SettingFacts& setting, const SettingValue& value) {
  if (setting.kind == Kind::flag) return true;
  if (setting.kind == Kind::choice) return is_among(setting.choices, std::get<std::string>(value));
  if (const auto* number = std::get_if<double>(&value)) {
    return *number >= static_cast<double>(setting.range.least) &&
           *number <= static_cast<double>(setting.range.most);
  }
  const std::int64_t number = number_in(value);
  return number >= setting.range.least && number <= setting.range.most;
}

void check(const SettingFacts& setting, const SettingValue& value) {
  if (allows(setting, value)) return;
  throw UsageError{std::string{setting.name} + " is " + text_of(setting, value) + "; it must be " +
                   range_of(setting)};
}

}  // namespace stela

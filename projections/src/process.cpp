#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/error.hpp>
#include <stela/projections/process.hpp>

#include <algorithm>
#include <limits>

namespace stela {
namespace {

/// The rule that `key` breaks; empty if it breaks none.
std::string_view broken_key_rule(std::string_view key) {
  if (key.empty()) return "it is empty";
  if (key.size() > Process::max_key_size) return "it is longer than 255 bytes";
  const bool has_control = std::any_of(key.begin(), key.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
  if (has_control) return "it has a control character";
  return json::is_utf8(key) ? std::string_view{} : "it isn't valid UTF-8";
}

/// Makes it fit for a message.
std::string shown(std::string_view key) {
  constexpr std::size_t max_shown = 80;
  std::string text;
  for (const char c : key.substr(0, max_shown)) {
    text += static_cast<unsigned char>(c) < 0x20 || c == 0x7f || (c & 0x80) != 0 ? '?' : c;
  }
  return key.size() > max_shown ? text.append("…") : text;
}

}  // namespace

std::optional<StreamId> Process::stream_of_key() const {
  try {
    return StreamId::parse(key_);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

Timestamp Process::after(std::chrono::microseconds delay) const {
  // On overflow, use the latest or earliest time.
  if (delay.count() > 0 && time_ > Timestamp::max() - delay) return Timestamp::max();
  if (delay.count() < 0 && time_ < Timestamp::min() - delay) return Timestamp::min();
  return time_ + delay;
}

void Process::check_kind(std::string_view kind) const {
  if (std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end()) return;
  throw UsageError{"the process has no timer '" + std::string{kind} + "'; add it to its TimerSet"};
}

Timestamp Process::check_due(std::string_view kind, Timestamp due) const {
  if (due < detail::end_of_time) return std::max(due, detail::first_time);
  throw UsageError{"the timer '" + std::string{kind} + "' of '" + key_ +
                   "' would be due after the year 9999"};
}

namespace detail {

void ProcessAccess::check_key(std::string_view key) {
  const std::string_view rule = broken_key_rule(key);
  if (rule.empty()) return;
  throw UsageError{"'" + shown(key) +
                   "' can't be the key of a process's instance: " + std::string{rule}};
}

void throw_corrupt_timer(std::string_view kind, std::string_view problem) {
  throw CorruptEvent{"the timer '" + std::string{kind} +
                     "' can't be decoded: " + std::string{problem}};
}

}  // namespace detail
}  // namespace stela

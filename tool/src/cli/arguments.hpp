// The parsed command line.
#pragma once

#include "cli/command.hpp"

#include <stela/framework/detail/function_ref.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::tool {

struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

/// The options and operands of one call. Threads: any number may read.
class Arguments {
 public:
  bool has(std::string_view option) const noexcept;
  /// The last value given. Empty if the option wasn't given.
  std::optional<std::string> text(std::string_view option) const;
  /// Misuse if it wasn't given.
  std::string required(std::string_view option) const;
  std::vector<std::string> all(std::string_view option) const;
  /// Misuse unless it is a whole number in the range.
  std::optional<std::int64_t> integer(std::string_view option, Range range) const;
  /// Every option with its value, in the order in which they were given.
  void for_each(FunctionRef<void(std::string_view, const std::string&)> f) const {
    for (const auto& [option, value] : given_) f(option, value);
  }
  const std::vector<std::string>& operands() const noexcept { return operands_; }

  void add(std::string_view option, std::string value) {
    given_.emplace_back(option, std::move(value));
  }
  void add_operand(std::string value) { operands_.push_back(std::move(value)); }

 private:
  /// The names point into the command table, which outlives the call.
  std::vector<std::pair<std::string_view, std::string>> given_;
  std::vector<std::string> operands_;
};

/// The requested command with its arguments.
struct Parsed {
  /// Null if no command was named; help is then about `group`.
  const Command* command = nullptr;
  std::string group = {};
  bool wants_help = false;
  Arguments arguments = {};
};

/// Misuse, with a suggestion, for an unknown command or option.
Parsed parse(std::span<const Command> commands, std::span<const char* const> words);
/// As above, but on a mistake `parsed` keeps everything before it.
void parse(std::span<const Command> commands, std::span<const char* const> words, Parsed& parsed);

/// Misuse, naming `what`, unless `text` is a whole number in the range.
std::int64_t to_integer(std::string_view text, std::string_view what, Range range);

/// The candidate most similar to a mistyped `word`. Empty if none is near: at most `most` errors,
/// or a third of its length.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates,
                         std::size_t most = 0);
/// ". Did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace stela::tool

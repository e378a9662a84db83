#include "cli/arguments.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <charconv>

namespace stela::tool {
namespace {

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

const Option* find(std::span<const Option> options, std::string_view name) {
  for (const Option& option : options) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

/// True if `path` is the beginning of a command, in whole words.
bool is_group(std::span<const Command> commands, std::string_view path) {
  return std::any_of(commands.begin(), commands.end(), [&](const Command& command) {
    return begins_with(command.path, path) &&
           (command.path.size() == path.size() || path.empty() || command.path[path.size()] == ' ');
  });
}

std::vector<std::string_view> next_words(std::span<const Command> commands, std::string_view path) {
  std::vector<std::string_view> words;
  for (const Command& command : commands) {
    if (!is_group({&command, 1}, path) || command.path.size() == path.size()) continue;
    std::string_view rest = command.path.substr(path.empty() ? 0 : path.size() + 1);
    rest = rest.substr(0, rest.find(' '));
    if (std::find(words.begin(), words.end(), rest) == words.end()) words.push_back(rest);
  }
  return words;
}

class Parser {
 public:
  Parser(std::span<const Command> commands, std::span<const char* const> words, Parsed& parsed)
      : commands_{commands}, words_{words}, parsed_{parsed} {}

  void run() {
    for (; at_ < words_.size(); ++at_) {
      const std::string_view word = words_[at_];
      if (!only_operands_ && word == "--") {
        only_operands_ = true;
      } else if (!only_operands_ && word.size() > 1 && word[0] == '-' && !is_number(word)) {
        take_option(word);
      } else {
        take_word(word);
      }
    }
    settle();
  }

 private:
  static bool is_number(std::string_view word) { return word[1] >= '0' && word[1] <= '9'; }

  void take_word(std::string_view word) {
    if (parsed_.command == nullptr) {
      std::string longer = parsed_.group;
      if (!longer.empty()) longer += ' ';
      longer += word;
      if (!is_group(commands_, longer)) refuse_command(word);
      parsed_.group = std::move(longer);
      for (const Command& command : commands_) {
        if (command.path == parsed_.group) parsed_.command = &command;
      }
      return;
    }
    const auto& operands = parsed_.command->operands;
    const bool any_number = !operands.empty() && operands.back().repeats;
    if (!any_number && parsed_.arguments.operands().size() == operands.size()) {
      std::string text = "'" + in_one_line(word) + "' is one word too many for '";
      throw Misuse{text.append(parsed_.command->path).append("'")};
    }
    parsed_.arguments.add_operand(std::string{word});
  }

  [[noreturn]] void refuse_command(std::string_view word) const {
    std::string text = "there is no command '";
    if (!parsed_.group.empty()) text.append(parsed_.group).append(" ");
    text.append(in_one_line(word)).append("'");
    throw Misuse{text + did_you_mean(word, next_words(commands_, parsed_.group))};
  }

  void take_option(std::string_view word) {
    if (word == "-h" || word == "--help") {
      parsed_.wants_help = true;
      return;
    }
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const Option* option = find(common_options(), name);
    if (option == nullptr && parsed_.command != nullptr) {
      option = find(parsed_.command->options, name);
    }
    if (option == nullptr && parsed_.command == nullptr && name == db_option.name) {
      option = &db_option;
    }
    if (option == nullptr) refuse_option(name);
    if (!option->repeats && parsed_.arguments.has(option->name)) {
      throw Misuse{std::string{option->name}.append(" is given twice")};
    }
    parsed_.arguments.add(option->name, value_of(*option, word, equals));
  }

  std::string value_of(const Option& option, std::string_view word, std::size_t equals) {
    const bool has_value = equals != std::string_view::npos;
    if (option.value.empty()) {
      if (has_value) throw Misuse{std::string{option.name}.append(" takes no value")};
      return {};
    }
    if (has_value) return std::string{word.substr(equals + 1)};
    // An option must not become the value of another option that was given an empty variable.
    const bool is_option_next =
        at_ + 1 < words_.size() && std::string_view{words_[at_ + 1]}.starts_with("--");
    if (at_ + 1 == words_.size() || is_option_next) {
      std::string text{option.name};
      text.append(" needs a value: ").append(option.value);
      if (is_option_next) text.append("; one that begins with -- stands behind =");
      throw Misuse{text};
    }
    return words_[++at_];
  }

  [[noreturn]] void refuse_option(std::string_view name) const {
    std::vector<std::string_view> known{"--help"};
    for (const Option& option : common_options()) known.push_back(option.name);
    std::string text;
    if (parsed_.command != nullptr) {
      for (const Option& option : parsed_.command->options) known.push_back(option.name);
      text.append("'").append(parsed_.command->path).append("' has no option ");
    } else {
      text = "a command's options come after its name; there is no general option ";
    }
    throw Misuse{text + in_one_line(name) + did_you_mean(name, known)};
  }

  void settle() const {
    if (parsed_.command == nullptr || parsed_.wants_help) return;
    const auto& operands = parsed_.command->operands;
    const std::size_t given = parsed_.arguments.operands().size();
    if (given < operands.size() && operands[given].required) {
      std::string text = "'";
      text.append(parsed_.command->path).append("' needs ").append(operands[given].name);
      throw Misuse{text.append(": ").append(operands[given].summary)};
    }
    // --db may come before the command, whose options weren't known then.
    if (parsed_.arguments.has("--db") && find(parsed_.command->options, "--db") == nullptr) {
      throw Misuse{"'" + std::string{parsed_.command->path} + "' has no option --db"};
    }
  }

  std::span<const Command> commands_;
  std::span<const char* const> words_;
  std::size_t at_ = 0;
  bool only_operands_ = false;
  Parsed& parsed_;
};

/// Optimal string alignment: insertions, deletions, replacements and swapped neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

bool Arguments::has(std::string_view option) const noexcept {
  return std::any_of(given_.begin(), given_.end(),
                     [&](const auto& given) { return given.first == option; });
}

std::optional<std::string> Arguments::text(std::string_view option) const {
  std::optional<std::string> value;
  for (const auto& [name, given] : given_) {
    if (name == option) value = given;
  }
  return value;
}

std::string Arguments::required(std::string_view option) const {
  auto value = text(option);
  if (!value) throw Misuse{std::string{option}.append(" is needed")};
  return *std::move(value);
}

std::vector<std::string> Arguments::all(std::string_view option) const {
  std::vector<std::string> values;
  for (const auto& [name, given] : given_) {
    if (name == option) values.push_back(given);
  }
  return values;
}

std::optional<std::int64_t> Arguments::integer(std::string_view option, Range range) const {
  const auto value = text(option);
  if (!value) return std::nullopt;
  return to_integer(*value, option, range);
}

Parsed parse(std::span<const Command> commands, std::span<const char* const> words) {
  Parsed parsed;
  parse(commands, words, parsed);
  return parsed;
}

void parse(std::span<const Command> commands, std::span<const char* const> words, Parsed& parsed) {
  Parser{commands, words, parsed}.run();
}

std::int64_t to_integer(std::string_view text, std::string_view what, Range range) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < range.least ||
      value > range.most) {
    throw Misuse{std::string{what} + " is a whole number from " + std::to_string(range.least) +
                 " to " + std::to_string(range.most) + ", not '" + in_one_line(text) + "'"};
  }
  return value;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates,
                         std::size_t most) {
  std::string_view best;
  // Command names are short, so a long text isn't a mistyped one.
  if (word.size() > 64) return best;
  std::size_t least = (most > 0 ? most : std::max<std::size_t>(2, word.size() / 3)) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t far = distance(word, candidate);
    if (far < least && far < candidate.size()) {
      least = far;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view best = nearest(word, candidates);
  if (best.empty()) return {};
  return std::string{". Did you mean '"}.append(best).append("'?");
}

}  // namespace stela::tool

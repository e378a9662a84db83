// The console's answers for agents, by the Model Context Protocol: one JSON object per line.
#pragma once

#include "console/api.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

/// Offers each command of the console as a tool. None changes anything: for actions it tells what
/// they would do, and which command a person would run. Threads: one at a time.
class Mcp {
 public:
  struct Options {
    std::string program = {};
    /// Includes payloads, states, metadata and headers in answers.
    bool gives_payloads = false;
  };

  Mcp(const ConsoleCommands& commands, const ServedStore& store, Options options)
      : commands_{commands}, api_{commands}, store_{store}, options_{std::move(options)} {}

  /// Empty for a notification, which has no answer.
  std::string answer(std::string_view line) const;

 private:
  std::string result_of(std::string_view method, std::string_view parameters) const;
  std::string tools() const;
  std::string call(std::string_view parameters) const;
  std::string preview(const CommandCall& call) const;

  const ConsoleCommands& commands_;
  const Api api_;
  const ServedStore& store_;
  const Options options_;
};

}  // namespace stela::tool

// The console's data: what the commands that only read print as JSON.
#pragma once

#include "cli/output.hpp"
#include "console/commands.hpp"
#include "console/people.hpp"
#include "http/message.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

/// "events/show/4711?…" is `events show 4711`: the words of a command, what it is about, and its
/// options. Threads: any.
class Api {
 public:
  explicit Api(const ConsoleCommands& commands) : commands_{commands} {}

  /// `path` is what follows the store's name. A command whose grant is missing isn't run.
  HttpResponse answer(const ServedStore& store, std::string_view path, std::string_view query,
                      const Grants& grants) const;

  struct Answer {
    int code = 0;
    Output::Kept kept = {};
    /// What it printed: an object, or a list of them.
    std::string json() const;
    bool is_list = false;
    bool has_states = false;
  };
  /// Of a command of the console's table.
  Answer ask(const ServedStore& store, const CommandCall& call) const;

  /// `{"sequence":…,"at":…}`: the last event before something is asked.
  std::string as_of(const ServedStore& store) const;

 private:
  const ConsoleCommands& commands_;
};

}  // namespace stela::tool

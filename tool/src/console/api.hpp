// The console's data: the JSON output of commands that only read.
#pragma once

#include "cli/output.hpp"
#include "console/commands.hpp"
#include "console/people.hpp"
#include "http/message.hpp"

#include <string>
#include <string_view>

namespace stela::tool {

/// Maps a path to a command: "events/show/4711?…" is `events show 4711`, with its operands and
/// options. Threads: any.
class Api {
 public:
  explicit Api(const ConsoleCommands& commands) : commands_{commands} {}

  /// `path` is the part after the store's name. A command without its grant isn't run.
  HttpResponse answer(const ServedStore& store, std::string_view path, std::string_view query,
                      const Grants& grants) const;

  struct Answer {
    int code = 0;
    Output::Kept kept = {};
    /// The printed objects: one object, or a list.
    std::string json() const;
    bool is_list = false;
    bool has_states = false;
  };
  /// Runs a command of the console's table.
  Answer ask(const ServedStore& store, const CommandCall& call) const;

  /// `{"sequence":…,"at":…}`: the last event before the question.
  std::string as_of(const ServedStore& store) const;

 private:
  const ConsoleCommands& commands_;
};

}  // namespace stela::tool

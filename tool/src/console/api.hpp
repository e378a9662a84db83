// The console's data: what the commands that only read print as JSON.
#pragma once

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "http/message.hpp"

#include <stela/tool/app.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::tool {

/// A database, and what its pages call it.
struct ServedStore {
  std::string name;
  std::string place;
};

/// "events/show/4711?…" is `events show 4711`: the words of a command, what it is about, and its
/// options. Threads: any.
class Api {
 public:
  /// `common` are options for every command that knows them: --nats, --set.
  Api(const App& app, std::span<const Command> commands, const Arguments& common)
      : app_{app}, commands_{commands}, common_{common} {}

  /// `path` is what follows the store's name.
  HttpResponse answer(const ServedStore& store, std::string_view path,
                      std::string_view query) const;

  using Pairs = std::vector<std::pair<std::string, std::string>>;
  struct Answer {
    int code = 0;
    Output::Kept kept = {};
    /// What it printed: an object, or a list of them.
    std::string json() const;
    bool is_list = false;
  };
  /// Of a command of the console's table.
  Answer ask(const ServedStore& store, std::string_view command,
             const std::vector<std::string>& operands = {}, const Pairs& options = {}) const;

  /// `{"sequence":…,"at":…}`: the last event before something is asked.
  std::string as_of(const ServedStore& store) const;

 private:
  const App& app_;
  std::span<const Command> commands_;
  const Arguments& common_;
};

}  // namespace stela::tool

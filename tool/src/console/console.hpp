// Answers what a browser asks the console.
#pragma once

#include "console/api.hpp"
#include "console/gate.hpp"
#include "console/jobs.hpp"
#include "console/overview.hpp"
#include "console/page.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stela::tool {

/// Threads: any.
class Console {
 public:
  struct Options {
    std::vector<ServedStore> stores;
    Gate::Options gate = {};
    /// What the page names it, as "production"; empty: nothing.
    std::string environment = {};
    std::string web_root = {};
    bool asks_broker = false;
    /// The user and the host that it runs as: who acts, for the logs of operators.
    std::string user = {};
    std::string host = {};
  };

  Console(const ConsoleCommands& commands, const App& app, Options options);

  /// Everything that needs no database. Nothing for data that has to be asked for: `answer` may.
  std::optional<HttpResponse> answer_at_once(const HttpRequest& request);
  /// Of a request that `answer_at_once` let pass.
  HttpResponse answer(const HttpRequest& request);

  /// Its store's, for whom others don't wait.
  std::size_t lane(const HttpRequest& request) const;

  /// What follows the server's address at a browser's first visit, which is good once.
  std::string new_link();

 private:
  std::optional<HttpResponse> pass(const HttpRequest& request);
  std::optional<HttpResponse> refuse_change(const HttpRequest& request) const;
  /// What people ask for has a grant, whatever it is.
  std::optional<Asker> admit(const HttpRequest& request, HttpResponse& refusal);
  bool can_act() const;
  const ServedStore* find_store(std::string_view name) const;
  HttpResponse give(const ServedStore& store, std::string_view rest, const HttpRequest& request,
                    const Asker& asker);
  std::string facts(const Asker& asker) const;

  const ConsoleCommands& commands_;
  const Api api_;
  const App& app_;
  const Options options_;
  Gate gate_;
  ConsolePage page_;
  Jobs jobs_;
  /// By store.
  std::map<std::string, Overview, std::less<>> overviews_;
};

}  // namespace stela::tool

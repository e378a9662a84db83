// Answers the console's HTTP requests.
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
    /// A label on the page, such as "production". Empty: none.
    std::string environment = {};
    std::string web_root = {};
    bool asks_broker = false;
    /// The user and the host of the process: the actor in the operators' logs.
    std::string user = {};
    std::string host = {};
  };

  Console(const ConsoleCommands& commands, const App& app, Options options);

  /// Answers everything that needs no database. Empty for data, which `answer` must fetch.
  std::optional<HttpResponse> answer_at_once(const HttpRequest& request);
  /// Answers a request that `answer_at_once` left.
  HttpResponse answer(const HttpRequest& request);

  /// The lane of the request's store: stores don't wait for each other.
  std::size_t lane(const HttpRequest& request) const;

  /// The path of a link for a browser's first visit. It works once.
  std::string new_link();

 private:
  std::optional<HttpResponse> pass(const HttpRequest& request);
  std::optional<HttpResponse> refuse_change(const HttpRequest& request) const;
  /// Checks the grant that every request from people needs.
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
  /// By store name.
  std::map<std::string, Overview, std::less<>> overviews_;
};

}  // namespace stela::tool

// What operators have the console do: commands that change something, asked about before.
#pragma once

#include "cli/output.hpp"
#include "console/commands.hpp"
#include "console/gate.hpp"
#include "http/message.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace stela::tool {

/// A job is a command on a thread of its own. It finds out what it would do, asks, and goes on once
/// somebody confirms: what it then does is what it asked about, as far as nothing has changed
/// since. One that runs can be stopped, as its command allows. Of the confirmed jobs of a store one
/// runs at a time; the others wait. Threads: any.
class Jobs {
 public:
  /// Who may be asked for so long.
  static constexpr std::chrono::minutes question_lasts{15};

  /// The user and the host that the console runs as, for the logs of operators.
  Jobs(const ConsoleCommands& commands, std::string user, std::string host);
  /// Cancels those that ask, and waits until those that run have come to a safe point.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// `path` is what follows ".../jobs": a new job, all, one, or its confirmation. Whoever starts or
  /// decides one needs the grant of its command.
  HttpResponse answer(const ServedStore& store, std::string_view path, const HttpRequest& request,
                      const Asker& asker);

 private:
  enum class State : std::uint8_t { looks, asks, waits, runs, done, failed, cancelled };
  struct Job;

  HttpResponse start(const ServedStore& store, const HttpRequest& request, const Asker& asker);
  HttpResponse decide(Job& job, bool agrees, const Asker& asker);
  void cancel(Job& job, std::string_view why);
  HttpResponse list(const ServedStore& store, const Grants& grants) const;
  void run(Job& job, const Command& command, const Arguments& arguments);
  /// "ann@shop1 (console)".
  std::string who(const std::string& name) const;
  /// In the database, if somebody else than who asked decided about it. False if that fails.
  bool note_decision(const Job& job, const std::string& by, std::string_view decision,
                     std::string& error) const;
  bool ask(Job& job, std::string_view question);
  void forget_old();
  /// Of a store. If so many are open, the one that has asked longest is cancelled; false if none
  /// asks.
  bool make_room(const std::string& store);
  static std::string in_json(const Job& job, const Grants& grants);

  const ConsoleCommands& commands_;
  const std::string user_;
  const std::string host_;
  mutable std::mutex mutex_;
  std::condition_variable decided_;
  bool is_ending_ = false;
  std::int64_t last_ = 0;
  std::map<std::int64_t, std::unique_ptr<Job>> jobs_;
  /// By store: whoever runs there.
  std::map<std::string, std::mutex> turns_;
};

}  // namespace stela::tool

// What operators have the console do: commands that change something, asked about before.
#pragma once

#include "cli/output.hpp"
#include "console/commands.hpp"
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
/// since. Of the confirmed jobs of a store one runs at a time; the others wait. Threads: any.
class Jobs {
 public:
  /// Who may be asked for so long.
  static constexpr std::chrono::minutes question_lasts{15};

  /// `who` is noted in the logs of operators.
  Jobs(const ConsoleCommands& commands, std::string who);
  /// Cancels those that ask, and waits for those that run.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// `path` is what follows ".../jobs": a new job, all, one, or its confirmation.
  HttpResponse answer(const ServedStore& store, std::string_view path, const HttpRequest& request);

 private:
  enum class State : std::uint8_t { looks, asks, waits, runs, done, failed, cancelled };
  struct Job;

  HttpResponse start(const ServedStore& store, const HttpRequest& request);
  HttpResponse decide(Job& job, bool agrees);
  void cancel(Job& job, std::string_view why);
  HttpResponse list(const ServedStore& store) const;
  void run(Job& job, const Command& command, const Arguments& arguments);
  bool ask(Job& job, std::string_view question);
  void forget_old();
  /// Of a store. If so many are open, the one that has asked longest is cancelled; false if none
  /// asks.
  bool make_room(const std::string& store);
  static std::string in_json(const Job& job);

  const ConsoleCommands& commands_;
  const std::string who_;
  mutable std::mutex mutex_;
  std::condition_variable decided_;
  bool is_ending_ = false;
  std::int64_t last_ = 0;
  std::map<std::int64_t, std::unique_ptr<Job>> jobs_;
  /// By store: whoever runs there.
  std::map<std::string, std::mutex> turns_;
};

}  // namespace stela::tool

// The console's jobs: commands that change something, confirmed beforehand.
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

/// A job runs a command on a thread of its own. It finds out what it would do, asks, and continues
/// once an operator confirms. It then does what it asked about, unless something has changed since.
/// A running job can be stopped if its command allows. Of a store's confirmed jobs one runs at a
/// time; the others wait. Threads: any.
class Jobs {
 public:
  /// How long a question stays open.
  static constexpr std::chrono::minutes question_lasts{15};

  /// The user and the host of the console, for the operators' logs.
  Jobs(const ConsoleCommands& commands, std::string user, std::string host);
  /// Cancels jobs that ask, and waits until running jobs have reached a safe point.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  /// `path` is the part after ".../jobs": a new job, all jobs, one job, or its confirmation.
  /// Starting or deciding a job needs the grant of its command.
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
  /// Notes a decision in the database if somebody else asked for the job. False if that fails.
  bool note_decision(const Job& job, const std::string& by, std::string_view decision,
                     std::string& error) const;
  bool ask(Job& job, std::string_view question);
  void forget_old();
  /// Makes room for a new job of a store. At the limit it cancels the oldest question; false if no
  /// job asks.
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
  /// By store: held by its running job.
  std::map<std::string, std::mutex> turns_;
};

}  // namespace stela::tool

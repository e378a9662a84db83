#include "console/jobs.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "console/problem.hpp"
#include "console/routes.hpp"

#include <stela/framework/codec/json_reader.hpp>
#include <stela/framework/codec/json_writer.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace stela::tool {
namespace {

/// So many are known; of those that ask or run at a time.
constexpr std::size_t most_jobs = 200;
constexpr std::size_t most_open = 8;

const Action* action_of(std::string_view command) {
  for (const Action& action : all_actions()) {
    if (action.command == command) return &action;
  }
  return nullptr;
}

/// {"command": "outbox retry", "operands": ["17"], "options": {"group": "…"}}
struct Wanted {
  std::string command = {};
  CommandCall call = {};
};

Wanted wanted_in(const std::string& body) {
  Wanted wanted;
  json::Reader reader{body};
  reader.open_object();
  std::string name;
  while (reader.next_member(name)) {
    if (name == "command") {
      wanted.command = reader.get_string();
    } else if (name == "operands") {
      reader.open_array();
      while (reader.next_element()) wanted.call.operands.emplace_back(reader.get_string());
      reader.close();
    } else if (name == "options") {
      std::string option;
      reader.open_object();
      while (reader.next_member(option)) {
        wanted.call.options.emplace_back(option, std::string{reader.get_string()});
      }
      reader.close();
    } else {
      throw Misuse{"a job has 'command', 'operands' and 'options'"};
    }
  }
  reader.close();
  reader.finish();
  return wanted;
}

/// So many lines of what a job printed are kept.
constexpr int most_printed = 200;

/// False if there was more than that.
bool keep_beginning(std::string& text) {
  std::size_t at = 0;
  for (int line = 0; line < most_printed; ++line) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) return true;
    at = end + 1;
  }
  if (at == text.size()) return true;
  text.resize(at);
  return false;
}

}  // namespace

struct Jobs::Job {
  std::int64_t number = 0;
  std::string store;
  std::string line;
  bool asks_by_itself = false;
  State state = State::looks;
  std::string question = {};
  std::optional<bool> decision = {};
  std::string why_cancelled = {};
  std::unique_lock<std::mutex> turn = {};
  /// The command's own while it runs.
  Output::Kept kept = {};
  bool is_all_kept = true;
  std::jthread thread = {};

  bool is_open() const noexcept {
    return state == State::looks || state == State::asks || state == State::waits ||
           state == State::runs;
  }
};

Jobs::Jobs(const ConsoleCommands& commands, std::string who)
    : commands_{commands}, who_{std::move(who)} {}

Jobs::~Jobs() {
  {
    const std::lock_guard lock{mutex_};
    is_ending_ = true;
  }
  decided_.notify_all();
  for (auto& [number, job] : jobs_) {
    if (job->thread.joinable()) job->thread.join();
  }
}

HttpResponse Jobs::answer(const ServedStore& store, std::string_view path,
                          const HttpRequest& request) {
  const bool is_post = request.method == "POST";
  if (path.empty()) return is_post ? start(store, request) : list(store);
  path.remove_prefix(1);
  const std::string_view number = path.substr(0, path.find('/'));
  const std::string_view verb = path.substr(std::min(number.size() + 1, path.size()));
  const std::lock_guard lock{mutex_};
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& one) {
    return one.second->store == store.name && std::to_string(one.first) == number;
  });
  if (found == jobs_.end()) {
    return problem(404, "Not found", "there is no such job: it was done, or the console restarted");
  }
  Job& job = *found->second;
  if (verb.empty() && !is_post) return json_answer(in_json(job));
  if (is_post && verb == "confirm") return decide(job, true);
  if (is_post && verb == "cancel") return decide(job, false);
  return problem(404, "Not found", "a job can be confirmed and cancelled");
}

HttpResponse Jobs::start(const ServedStore& store, const HttpRequest& request) {
  if (!is_json(request)) {
    return problem(415, "Not JSON", "the Content-Type is application/json");
  }
  try {
    Wanted wanted = wanted_in(request.body);
    const Action* action = action_of(wanted.command);
    if (action == nullptr) {
      return problem(404, "Not found", "the console does no '" + in_one_line(wanted.command) + "'");
    }
    wanted.call.command = action->command;
    const Arguments arguments =
        commands_.arguments({.name = store.name, .place = store.acting_place}, wanted.call);
    const std::lock_guard lock{mutex_};
    if (!make_room(store.name)) {
      return problem(503, "Too many jobs", "eight jobs run or wait here: come again");
    }
    forget_old();
    auto job = std::make_unique<Job>();
    job->number = ++last_;
    job->store = store.name;
    job->line = commands_.line(wanted.call);
    job->asks_by_itself = action->asks;
    const Command& command = commands_.find(action->command);
    job->thread = std::jthread{
        [this, &command, arguments, &started = *job] { run(started, command, arguments); }};
    HttpResponse response = json_answer(in_json(*job));
    response.status = 201;
    jobs_.emplace(job->number, std::move(job));
    return response;
  } catch (const std::exception& e) {
    return problem(400, "Not understood", e.what());
  }
}

void Jobs::run(Job& job, const Command& command, const Arguments& arguments) {
  const Principal principal{who_, [&](std::string_view question) { return ask(job, question); }};
  Output::Kept kept;
  Output out{{.json = true, .no_color = true, .kept = &kept}};
  const bool may = job.asks_by_itself || ask(job, "Run '" + job.line + "'?");
  const int code =
      may ? commands_.run(command, arguments, out, Invocation::Access::writes, &principal) : failed;
  const bool is_all_kept = keep_beginning(kept.out);
  const std::lock_guard lock{mutex_};
  job.is_all_kept = is_all_kept;
  const bool is_cancelled = job.decision == false;
  if (is_cancelled) kept.error = job.why_cancelled;
  job.state = is_cancelled ? State::cancelled : code == done ? State::done : State::failed;
  job.kept = std::move(kept);
  job.turn = {};
}

bool Jobs::ask(Job& job, std::string_view question) {
  std::unique_lock lock{mutex_};
  // A command that asks twice was confirmed as a whole.
  if (job.decision) return *job.decision;
  job.question = question;
  job.state = State::asks;
  decided_.wait_for(lock, question_lasts, [&] { return is_ending_ || job.decision; });
  if (!job.decision) cancel(job, is_ending_ ? "the console ended" : "nobody confirmed it in time");
  if (!*job.decision) return false;
  std::mutex& turn = turns_[job.store];
  lock.unlock();
  std::unique_lock taken{turn};
  lock.lock();
  if (is_ending_) cancel(job, "the console ended");
  if (!*job.decision) return false;
  job.turn = std::move(taken);
  job.state = State::runs;
  return true;
}

HttpResponse Jobs::decide(Job& job, bool agrees) {
  const bool is_asked = job.state == State::asks && !job.decision;
  // One that waits for its turn may still be taken back.
  if (!is_asked && !(job.state == State::waits && !agrees)) {
    return problem(409, "Not asked", "this job doesn't ask any more");
  }
  if (agrees) {
    job.decision = true;
    job.state = State::waits;
  } else {
    cancel(job, {});
  }
  decided_.notify_all();
  return json_answer(in_json(job));
}

void Jobs::cancel(Job& job, std::string_view why) {
  job.decision = false;
  job.why_cancelled = why;
}

bool Jobs::make_room(const std::string& store) {
  std::size_t open = 0;
  Job* oldest = nullptr;
  for (auto& [number, job] : jobs_) {
    if (job->store != store || !job->is_open() || job->decision == false) continue;
    ++open;
    if (oldest == nullptr && job->state == State::asks && !job->decision) oldest = job.get();
  }
  if (open < most_open) return true;
  if (oldest == nullptr) return false;
  cancel(*oldest, "eight newer ones asked");
  decided_.notify_all();
  return true;
}

HttpResponse Jobs::list(const ServedStore& store) const {
  const std::lock_guard lock{mutex_};
  std::string text;
  for (const auto& [number, job] : jobs_) {
    if (job->store == store.name) text += (text.empty() ? "" : ",") + in_json(*job);
  }
  return json_answer("{\"data\":[" + text + "]}");
}

void Jobs::forget_old() {
  for (auto at = jobs_.begin(); at != jobs_.end() && jobs_.size() >= most_jobs;) {
    at = at->second->is_open() ? std::next(at) : jobs_.erase(at);
  }
}

std::string Jobs::in_json(const Job& job) {
  constexpr std::string_view words[] = {"looks", "asks",   "waits",    "runs",
                                        "done",  "failed", "cancelled"};
  std::string text;
  json::ObjectWriter{text}
      .add("job", job.number)
      .add("command", job.line)
      .add("state", words[static_cast<std::size_t>(job.state)])
      .add("question", job.question)
      .add("error", job.kept.error)
      .add("printed_all", job.is_all_kept)
      .close();
  std::string notes;
  for (const std::string& note : job.kept.notes) {
    notes += notes.empty() ? "" : ",";
    json::append_string(notes, note);
  }
  text.pop_back();
  return text + ",\"printed\":" + job.kept.list() + ",\"notes\":[" + notes + "]}";
}

}  // namespace stela::tool

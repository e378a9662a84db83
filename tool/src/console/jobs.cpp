#include "console/jobs.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "console/problem.hpp"
#include "console/redaction.hpp"
#include "console/routes.hpp"

#include <stela/framework/codec/detail/json_reader.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace stela::tool {
namespace {

/// Limits of all jobs, and of those that ask or run.
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

/// The question for a command that doesn't ask by itself.
std::string question_of(const std::string& line) {
  return "Run '" + line + "'?";
}

/// The number of printed lines to keep of a job.
constexpr int most_printed = 200;

/// False if there were more lines.
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
  ServedStore store;
  std::string line;
  std::string line_without_texts;
  Grant grant = Grant::operate;
  /// The user who asked for it, and the one who decided.
  std::string asked_by;
  std::string decided_by = {};
  bool asks_by_itself = false;
  bool quotes_payloads = false;
  State state = State::looks;
  std::string question = {};
  std::optional<bool> decision = {};
  std::string why_cancelled = {};
  /// The user who stopped it.
  std::string stopped_by = {};
  std::stop_source stop = {};
  std::string stage = {};
  std::int64_t finished = 0;
  std::int64_t total = 0;
  std::unique_lock<std::mutex> turn = {};
  /// Belongs to the command while it runs.
  Output::Kept kept = {};
  bool is_all_kept = true;
  std::jthread thread = {};

  bool is_open() const noexcept {
    return state == State::looks || state == State::asks || state == State::waits ||
           state == State::runs;
  }
};

Jobs::Jobs(const ConsoleCommands& commands, std::string user, std::string host)
    : commands_{commands}, user_{std::move(user)}, host_{std::move(host)} {}

Jobs::~Jobs() {
  {
    const std::lock_guard lock{mutex_};
    is_ending_ = true;
    for (const auto& [number, job] : jobs_) job->stop.request_stop();
  }
  decided_.notify_all();
  for (auto& [number, job] : jobs_) {
    if (job->thread.joinable()) job->thread.join();
  }
}

HttpResponse Jobs::answer(const ServedStore& store, std::string_view path,
                          const HttpRequest& request, const Asker& asker) {
  const bool is_post = request.method == "POST";
  if (path.empty()) return is_post ? start(store, request, asker) : list(store, asker.grants);
  path.remove_prefix(1);
  const std::string_view number = path.substr(0, path.find('/'));
  const std::string_view verb = path.substr(std::min(number.size() + 1, path.size()));
  const std::lock_guard lock{mutex_};
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& one) {
    return one.second->store.name == store.name && std::to_string(one.first) == number;
  });
  if (found == jobs_.end()) {
    return problem(404, "Not found", "there is no such job: it was done, or the console restarted");
  }
  Job& job = *found->second;
  if (verb.empty() && !is_post) return json_answer(in_json(job, asker.grants));
  if (is_post && !asker.grants.has(job.grant)) return not_granted(job.grant);
  if (is_post && verb == "confirm") return decide(job, true, asker);
  if (is_post && verb == "cancel") return decide(job, false, asker);
  return problem(404, "Not found", "a job can be confirmed and cancelled");
}

HttpResponse Jobs::start(const ServedStore& store, const HttpRequest& request, const Asker& asker) {
  if (!is_json(request)) {
    return problem(415, "Not JSON", "the Content-Type is application/json");
  }
  try {
    Wanted wanted = wanted_in(request.body);
    const Action* action = action_of(wanted.command);
    if (action == nullptr) {
      return problem(404, "Not found", "the console does no '" + in_one_line(wanted.command) + "'");
    }
    if (!asker.grants.has(action->grant)) return not_granted(action->grant);
    const bool searches =
        std::any_of(wanted.call.options.begin(), wanted.call.options.end(),
                    [](const auto& option) { return searches_payloads("--" + option.first); });
    if (searches && !asker.grants.has(Grant::payloads)) return not_granted(Grant::payloads);
    wanted.call.command = action->command;
    const ServedStore acting{
        .name = store.name, .place = store.acting_place, .tenant = store.tenant};
    const Arguments arguments = commands_.arguments(acting, wanted.call);
    const std::lock_guard lock{mutex_};
    if (!make_room(store.name)) {
      return problem(503, "Too many jobs", "eight jobs run or wait here: come again");
    }
    forget_old();
    auto job = std::make_unique<Job>();
    job->number = ++last_;
    job->store = acting;
    job->line = commands_.line(wanted.call);
    job->line_without_texts = commands_.line_without_texts(wanted.call);
    job->grant = action->grant;
    job->asked_by = who(asker.name);
    job->asks_by_itself = action->asks;
    job->quotes_payloads = action->quotes_payloads;
    const Command& command = commands_.find(action->command);
    job->thread = std::jthread{
        [this, &command, arguments, &started = *job] { run(started, command, arguments); }};
    HttpResponse response = json_answer(in_json(*job, asker.grants));
    response.status = 201;
    jobs_.emplace(job->number, std::move(job));
    return response;
  } catch (const std::exception& e) {
    return problem(400, "Not understood", e.what());
  }
}

void Jobs::run(Job& job, const Command& command, const Arguments& arguments) {
  const Principal principal{
      job.asked_by, [&](std::string_view question) { return ask(job, question); }, job.stop};
  Output::Kept kept;
  const auto note_progress = [&](std::string_view stage, std::int64_t finished,
                                 std::int64_t total) {
    const std::lock_guard lock{mutex_};
    job.stage = stage;
    job.finished = finished;
    job.total = total;
  };
  Output out{{.json = true, .no_color = true, .kept = &kept, .on_progress = note_progress}};
  const bool may = job.asks_by_itself || ask(job, question_of(job.line));
  const int code =
      may ? commands_.run(command, arguments, out, Invocation::Access::writes, &principal) : failed;
  const bool is_all_kept = keep_beginning(kept.out);
  std::unique_lock lock{mutex_};
  job.is_all_kept = is_all_kept;
  const bool is_stopped = code == interrupted;
  const bool is_cancelled = job.decision == false || is_stopped;
  if (is_stopped) job.why_cancelled = "it ended while it ran: what was done until then stays";
  if (is_cancelled) {
    kept.error = job.why_cancelled;
    lock.unlock();
    std::string error;
    const std::string& by = is_stopped ? job.stopped_by : job.decided_by;
    if (!note_decision(job, by, "cancelled", error)) kept.notes.push_back(error);
    lock.lock();
  }
  job.state = is_cancelled ? State::cancelled : code == done ? State::done : State::failed;
  job.kept = std::move(kept);
  job.turn = {};
}

bool Jobs::ask(Job& job, std::string_view question) {
  std::unique_lock lock{mutex_};
  // If a command asks twice, the first confirmation covers both.
  if (job.decision) return *job.decision;
  job.question = question;
  job.state = State::asks;
  decided_.wait_for(lock, question_lasts, [&] { return is_ending_ || job.decision; });
  if (!job.decision) cancel(job, is_ending_ ? "the console ended" : "nobody confirmed it in time");
  if (!*job.decision) return false;
  std::mutex& turn = turns_[job.store.name];
  lock.unlock();
  std::unique_lock taken{turn};
  std::string error;
  const bool is_noted = note_decision(job, job.decided_by, "confirmed", error);
  lock.lock();
  if (is_ending_) cancel(job, "the console ended");
  if (!is_noted) cancel(job, error);
  if (!*job.decision) return false;
  job.turn = std::move(taken);
  job.state = State::runs;
  return true;
}

HttpResponse Jobs::decide(Job& job, bool agrees, const Asker& asker) {
  if (!agrees && job.state == State::runs) {
    job.stopped_by = who(asker.name);
    job.stop.request_stop();
    return json_answer(in_json(job, asker.grants));
  }
  const bool is_asked = job.state == State::asks && !job.decision;
  const bool looks = job.state == State::looks && !job.decision;
  if (looks && agrees) {
    return problem(409, "Not asked", "this job still finds out what it would do, and asks then");
  }
  // A job that waits for its turn may still be cancelled.
  if (!is_asked && !looks && !(job.state == State::waits && !agrees)) {
    return problem(409, "Not asked", "this job doesn't ask any more");
  }
  job.decided_by = who(asker.name);
  if (agrees) {
    job.decision = true;
    job.state = State::waits;
  } else {
    cancel(job, {});
    job.stop.request_stop();
  }
  decided_.notify_all();
  return json_answer(in_json(job, asker.grants));
}

std::string Jobs::who(const std::string& name) const {
  return (name.empty() ? user_ : name) + "@" + host_ + " (console)";
}

bool Jobs::note_decision(const Job& job, const std::string& by, std::string_view decision,
                         std::string& error) const try {
  if (by.empty() || by == job.asked_by) return true;
  commands_.note(job.store, {.part = "console",
                             .subject = "job " + std::to_string(job.number),
                             .what = std::string{decision},
                             .who = by,
                             .detail = job.line + ", which " + job.asked_by + " asked for"});
  return true;
} catch (const std::exception& e) {
  error = "who decided it can't be noted: " + std::string{e.what()};
  return false;
}

void Jobs::cancel(Job& job, std::string_view why) {
  job.decision = false;
  job.why_cancelled = why;
}

bool Jobs::make_room(const std::string& store) {
  std::size_t open = 0;
  Job* oldest = nullptr;
  for (auto& [number, job] : jobs_) {
    if (job->store.name != store || !job->is_open() || job->decision == false) continue;
    ++open;
    if (oldest == nullptr && job->state == State::asks && !job->decision) oldest = job.get();
  }
  if (open < most_open) return true;
  if (oldest == nullptr) return false;
  cancel(*oldest, "eight newer ones asked");
  decided_.notify_all();
  return true;
}

HttpResponse Jobs::list(const ServedStore& store, const Grants& grants) const {
  const std::lock_guard lock{mutex_};
  std::string text;
  for (const auto& [number, job] : jobs_) {
    if (job->store.name == store.name) text += (text.empty() ? "" : ",") + in_json(*job, grants);
  }
  return json_answer("{\"data\":[" + text + "]}");
}

void Jobs::forget_old() {
  for (auto at = jobs_.begin(); at != jobs_.end() && jobs_.size() >= most_jobs;) {
    at = at->second->is_open() ? std::next(at) : jobs_.erase(at);
  }
}

std::string Jobs::in_json(const Job& job, const Grants& grants) {
  constexpr std::string_view words[] = {"looks", "asks",   "waits",    "runs",
                                        "done",  "failed", "cancelled"};
  const Redaction redaction{grants.payloads, true};
  const bool has_payloads = grants.has(Grant::payloads);
  const std::string& line = has_payloads ? job.line : job.line_without_texts;
  const bool is_of_line = !job.question.empty() && !job.asks_by_itself;
  std::string text;
  json::ObjectWriter{text}
      .add("job", job.number)
      .add("command", line)
      .add("state", words[static_cast<std::size_t>(job.state)])
      .add("grant", name_of(job.grant))
      .add("stopping", job.state == State::runs && job.stop.stop_requested())
      .add("asked_by", job.asked_by)
      .add("question", is_of_line ? question_of(line) : redaction.sentence(job.question))
      .add("error", redaction.sentence(job.kept.error))
      .add("printed_all", job.is_all_kept)
      .close();
  std::string notes;
  for (const std::string& note : job.kept.notes) {
    notes += notes.empty() ? "" : ",";
    json::append_string(notes, redaction.sentence(note));
  }
  text.pop_back();
  text += ",\"decided_by\":";
  if (job.decided_by.empty()) {
    text += "null";
  } else {
    json::append_string(text, job.decided_by);
  }
  text += ",\"progress\":";
  if (job.stage.empty()) {
    text += "null";
  } else {
    json::ObjectWriter{text}
        .add("stage", job.stage)
        .add("done", job.finished)
        .add("total", job.total)
        .close();
  }
  const Redaction of_printed = job.quotes_payloads ? redaction.without_sentences() : redaction;
  return text + ",\"printed\":" + of_printed.json(job.kept.list()) + ",\"notes\":[" + notes + "]}";
}

}  // namespace stela::tool

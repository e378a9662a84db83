#include "console/overview.hpp"

#include "cli/exit.hpp"
#include "console/redaction.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

struct Part {
  std::string_view name;
  std::string_view command;
  std::vector<std::pair<std::string, std::string>> options = {};
  bool asks_broker = false;
};

const std::array<Part, 9>& all_parts() {
  static const std::array<Part, 9> parts{{
      {.name = "check", .command = "check", .asks_broker = true},
      {.name = "why", .command = "why", .asks_broker = true},
      {.name = "outbox", .command = "outbox status"},
      {.name = "workers", .command = "outbox workers"},
      {.name = "projections", .command = "projections status"},
      {.name = "inbox", .command = "inbox status"},
      {.name = "timers", .command = "processes list"},
      {.name = "history", .command = "outbox history", .options = {{"since", "1h"}}},
      {.name = "changes", .command = "changes", .options = {{"limit", "50"}}},
  }};
  return parts;
}

constexpr auto broker_every = 10s;
constexpr auto snapshot_every = 1s;
/// Parts that weren't queried by then report that, so that the page isn't delayed further.
constexpr auto longest_asked = 5s;

}  // namespace

std::optional<HttpResponse> Overview::answer_at_once(const HttpRequest& request, Payloads shown) {
  const std::lock_guard lock{mutex_};
  if (!is_fresh(Clock::now())) return {};
  return in_answer(request, shown);
}

HttpResponse Overview::answer(const HttpRequest& request, Payloads shown) {
  std::unique_lock lock{mutex_};
  made_.wait(lock, [&] { return !is_making_; });
  if (is_fresh(Clock::now())) return in_answer(request, shown);
  is_making_ = true;
  lock.unlock();
  std::string as_of;
  try {
    as_of = ask_all(Clock::now());
  } catch (...) {
    lock.lock();
    is_making_ = false;
    made_.notify_all();
    throw;
  }
  lock.lock();
  is_making_ = false;
  as_of_ = std::move(as_of);
  json_ = {};
  ++number_;
  until_ = Clock::now() + snapshot_every;
  made_.notify_all();
  return in_answer(request, shown);
}

HttpResponse Overview::in_answer(const HttpRequest& request, Payloads shown) {
  std::string& json = json_[static_cast<std::size_t>(shown)];
  if (json.empty()) json = in_json(shown);
  std::string tag = "\"" + std::to_string(number_);
  tag.append("-").append(name_of(shown)).append("\"");
  const bool is_known = request.field("if-none-match") == tag;
  HttpResponse response{.status = is_known ? 304U : 200U, .content_type = "application/json"};
  if (!is_known) response.body = json;
  response.fields.emplace_back("ETag", tag);
  return response;
}

std::string Overview::ask_all(Clock::time_point now) {
  const bool asks_all = !asks_broker_ || now >= kept_until_;
  const auto until = now + longest_asked;
  const std::string as_of = api_.as_of(store_);
  for (std::size_t i = 0; i < all_parts().size(); ++i) {
    const Part& part = all_parts()[i];
    if (Clock::now() >= until) {
      kept_[i] = R"({"error":"not asked: the database takes its time"})";
    } else if (asks_all || !part.asks_broker) {
      kept_[i] = ask_part(i);
    }
  }
  if (asks_all) kept_until_ = now + broker_every;
  return as_of;
}

std::string Overview::in_json(Payloads shown) const {
  const Redaction redaction{shown, true};
  std::string data;
  for (std::size_t i = 0; i < all_parts().size(); ++i) {
    data += data.empty() ? "" : ",";
    json::append_string(data, all_parts()[i].name);
    data += ':' + redaction.json(kept_[i]);
  }
  return "{\"as_of\":" + as_of_ + ",\"data\":{" + data + "}}";
}

std::string Overview::ask_part(std::size_t part) const {
  const auto& [name, command, options, asks_broker] = all_parts()[part];
  const Api::Answer answer = api_.ask(store_, {command, {}, options});
  if (answer.kept.error.empty()) return answer.json();
  // A database without an outbox has no workers, which isn't an error.
  if (answer.code == not_found && command != "check" && command != "why") return "null";
  std::string text;
  json::ObjectWriter{text}.add("error", answer.kept.error).close();
  return text;
}

}  // namespace stela::tool

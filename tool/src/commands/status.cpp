#include "commands/status.hpp"

#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/outbox_text.hpp"
#include "description/outbox.hpp"
#include "store_session.hpp"

#include <condition_variable>
#include <mutex>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

void show_status(Invocation& call, StoreSession& session, bool in_lines) {
  const OutboxStatus seen = session.operations().status();
  if (call.out.is_json()) {
    print_status(session, seen, call.out);
  } else if (in_lines) {
    call.out.line(to_line(seen));
  } else {
    print(seen, call.app.name, call.out);
  }
}

std::chrono::milliseconds interval_of(std::string_view text) {
  const auto interval = parse_duration(text);
  if (!interval) throw Misuse{not_a_duration("--watch", text)};
  if (*interval < 100ms) throw Misuse{"--watch is at least 100ms"};
  return *interval;
}

int outbox_status(Invocation& call) {
  if (const auto interval = call.arguments.text("--watch")) {
    return watch_status(call, interval_of(*interval));
  }
  StoreSession session{call, {.only_reads = true}};
  show_status(call, session, false);
  return done;
}

}  // namespace

void print_status(StoreSession& session, const OutboxStatus& status, Output& out) {
  const GlobalSequence last = session.store().last_sequence();
  print_json(out, description::outbox_status, status, {{"as_of", as_of(last, status.at)}});
}

int watch_status(Invocation& call, std::chrono::milliseconds interval) {
  const bool draws = call.out.can_draw();
  const Signals signals{call};
  StoreSession session{call, {.only_reads = true, .is_brief = true}};
  std::mutex mutex;
  std::condition_variable_any wake;
  while (!signals.stopped()) {
    try {
      if (draws) call.out.clear_screen();
      show_status(call, session, !draws);
      call.out.flush();
    } catch (const Error& e) {
      // A busy database may answer next time.
      if (!e.is_retryable()) throw;
      call.out.note(e.what());
    }
    std::unique_lock lock{mutex};
    wake.wait_for(lock, signals.token(), interval, [] { return false; });
  }
  return done;
}

std::string to_line(const OutboxStatus& outbox_status) {
  std::string text = to_string(outbox_status.at).substr(0, 19) + "Z";
  const auto add = [&](std::string_view name, std::int64_t value) {
    text.append(", ").append(name).append(" ").append(in_digits(value));
  };
  text.append(" pending ").append(waiting_in_words(outbox_status));
  add("in flight", outbox_status.in_flight);
  add("retrying", outbox_status.retrying);
  add("parked", outbox_status.parked);
  add("published", outbox_status.published);
  add("stopped", outbox_status.stopped);
  text.append(", oldest ").append(outbox_status.lag ? in_words(*outbox_status.lag) : "-");
  add("live workers", living_workers(outbox_status).all);
  return text;
}

Command status_command() {
  return {.path = "outbox status",
          .summary = "Show backlog, lag and workers",
          .options = {db_option,
                      {"--watch", "INTERVAL",
                       "show it again every so often until Ctrl-C; a line each time where stdout "
                       "is no terminal"}},
          .examples = {{"for a script", "outbox status --json"},
                       {"every two seconds", "outbox status --watch 2s"}},
          .run = outbox_status};
}

}  // namespace stela::tool

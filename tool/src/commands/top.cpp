// outbox top.
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "commands/outbox_text.hpp"
#include "commands/status.hpp"
#include "diagnosis/facts.hpp"
#include "store_session.hpp"
#include "worker/dashboard.hpp"
#include "worker/screen.hpp"

#include <stela/framework/error.hpp>

namespace stela::tool {
namespace {

/// An outbox that other processes relay.
class WatchedOutbox final : public Watched {
 public:
  WatchedOutbox(Invocation& call, StoreSession& session, Signals& signals)
      : call_{call}, session_{session}, signals_{signals} {}

  View look() override {
    try {
      status_ = session_.operations().status();
      beside_ = {};
      ask_followers(session_.store(), beside_);
      sight_.look(session_.operations(), status_);
      problem_.clear();
    } catch (const Error& e) {
      problem_ = e.what();
      beside_.store_remedy = way_to_reach(e.code(), session_.place().is_on_server());
    }
    View view{.command = call_.app.name + " outbox top",
              .program = call_.app.name,
              .database = session_.name(),
              .status = status_,
              .beside = beside_,
              .store_problem = problem_,
              .is_stale = !problem_.empty()};
    if (const auto unwritable = session_.place().find_write_problem();
        unwritable && !unwritable->is_of_this_user && problem_.empty()) {
      view.store_problem = unwritable->what;
      view.beside.store_remedy = way_to_write;
    }
    sight_.show(view);
    return view;
  }
  void leave() override { signals_.request_stop(); }
  bool is_ending() const override { return signals_.stopped(); }
  bool has_ended() override { return signals_.stopped(); }

 private:
  Invocation& call_;
  StoreSession& session_;
  Signals& signals_;
  Sight sight_;
  OutboxStatus status_;
  Facts beside_;
  std::string problem_;
};

int top(Invocation& call) {
  if (!can_show_dashboard(call.out)) return watch_status(call, std::chrono::seconds{2});
  Signals signals{{}, [] { Screen::restore(); }};
  StoreSession session{call, {.only_reads = true, .is_brief = true}};
  WatchedOutbox watched{call, session, signals};
  watched.look();
  show_dashboard(watched, call.out.has_color());
  return done;
}

}  // namespace

Command top_command() {
  return {.path = "outbox top",
          .summary = "Show all workers, partitions and problems, and publish nothing",
          .about =
              "The dashboard of 'outbox work' on a terminal; elsewhere a line every two "
              "seconds, as 'outbox status --watch 2s'. It asks no broker, which it would do "
              "every second: it shows what workers say of theirs, and what they note of each "
              "partition. 'doctor' asks.",
          .options = {db_option},
          .examples = {{"beside the workers", "outbox top --db shop.db"}},
          .run = top};
}

}  // namespace stela::tool

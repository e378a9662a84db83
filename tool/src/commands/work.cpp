// outbox work: the worker.
#include "broker.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "commands/event_selection.hpp"
#include "commands/outbox_text.hpp"
#include "commands/tenant_work.hpp"
#include "description/worker.hpp"
#include "http/server.hpp"
#include "store_session.hpp"
#include "tenant_registry.hpp"
#include "worker/crew.hpp"
#include "worker/dashboard.hpp"
#include "worker/dashboard_layout.hpp"
#include "worker/health.hpp"
#include "worker/metrics_file.hpp"
#include "worker/notify.hpp"
#include "worker/pages.hpp"
#include "worker/screen.hpp"
#include "worker/tick_text.hpp"

#include <stela/framework/error.hpp>
#include <stela/tool/metrics.hpp>

#include <map>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

/// The interval between writes of the metrics file.
constexpr auto metrics_every = 5s;

enum class How : std::uint8_t { forever, once, until_empty };

struct Plan {
  How how = How::forever;
  /// Stops after this many publications. 0: no limit.
  std::int64_t most = 0;
  bool silent = false;
  bool dashboard = false;
};

Plan plan_of(Invocation& call) {
  const Arguments& given = call.arguments;
  Plan plan{.most = given.integer("--max", {1, largest}).value_or(0),
            .silent = given.has("--silent")};
  if (given.has("--once") && given.has("--until-empty")) {
    throw Misuse{"--once and --until-empty contradict each other"};
  }
  if (given.has("--once")) plan.how = How::once;
  if (given.has("--until-empty")) plan.how = How::until_empty;
  if (plan.silent && call.out.is_json()) throw Misuse{"--silent and --json contradict each other"};
  plan.dashboard = plan.how == How::forever && !plan.silent && can_show_dashboard(call.out);
  return plan;
}

Crew::Options crew_options(Invocation& call, const Plan& plan, const Outbox& outbox) {
  const Settings& settings = call.settings();
  Crew::Options options{
      .relays = static_cast<int>(call.arguments.integer("--workers", {1, 64}).value_or(1)),
      .relay = relay_options(settings),
      .broker = broker_options(settings, outbox.fence(), outbox.partitioner()),
      .interval = std::chrono::milliseconds{settings.integer("worker.interval_ms")}};
  if (plan.how != How::forever && options.relays > 1) {
    throw Misuse{"--once and --until-empty work with one worker; leave --workers out"};
  }
  if (options.relays > 1 && !outbox.leasing()) {
    throw Misuse{"this outbox was made without leasing, for one worker; leave --workers out"};
  }
  if (options.interval >= options.relay.lease_renew) {
    throw Misuse{
        "worker.interval_ms must be shorter than outbox.lease_renew: a pausing worker doesn't "
        "renew its leases"};
  }
  if (settings.is_set("outbox.leasing") && settings.boolean("outbox.leasing") != outbox.leasing()) {
    throw Misuse{outbox.leasing()
                     ? "this outbox was created with leasing; leave --no-leasing out"
                     : "this outbox was made without leasing; leave outbox.leasing out"};
  }
  return options;
}

/// For a worker that ends when the broker fails: its exit reports the error, and once is enough.
class AllButTheEnd final : public LogSink {
 public:
  explicit AllButTheEnd(LogSink& next) : next_{next} {}
  void write(const LogEntry& entry) noexcept override {
    if (entry.name == "relay.broker_down" || entry.name == "relay.misconfigured") return;
    next_.write(entry);
  }

 private:
  LogSink& next_;
};

/// Runs the worker from start to end.
class Work {
 public:
  Work(Invocation& call, const Plan& plan)
      : call_{call},
        plan_{plan},
        log_{call.settings().text("log") == "json",
             plan.silent ? LogLevel::error : LogLevel::warning},
        statistics_{
            {.relays = static_cast<int>(call.arguments.integer("--workers", {1, 64}).value_or(1)),
             .window = std::chrono::seconds{call.settings().integer("worker.window")},
             .next = log_of(plan)}},
        signals_{[this] { ask_to_stop(); }, [] { Screen::restore(); }},
        session_{call, {.log = &statistics_, .metrics = &reported_}},
        watch_{session_.place(), reports().store(), reports().operations(), statistics_},
        crew_{session_.outbox(), statistics_, crew_options(call, plan, session_.outbox())} {
    if (const auto file = call.arguments.text("--metrics-file")) {
      metrics_file_.emplace(*file, session_.place().file());
      write_metrics();
    }
    crew_.on_tick([this](const Relay& relay, const RelayTick& tick) { report(relay, tick); });
    if (const auto address = call.arguments.text("--metrics")) {
      metrics_.emplace(
          parse_address(*address, "the port of metrics"),
          HttpPages{.at_once = other_page,
                    .in_time = [this](const HttpRequest& request) { return answer(request); }});
      if (!plan.silent && !plan.dashboard)
        call.out.note("Metrics at " + metrics_->url() + "/metrics");
    }
    const std::lock_guard lock{mutex_};
    ready_ = &crew_;
    if (signals_.stopped()) crew_.request_stop();
  }

  ~Work() {
    const std::lock_guard lock{mutex_};
    ready_ = nullptr;
  }

  int run() try { return work(); } catch (const UsageError& e) {
    // All options were checked before, so another worker has this one's name or the whole outbox.
    const char* const advice =
        session_.outbox().leasing() ? "; give this one another --id, or stop that one" : "";
    throw Exit{failed, in_one_line(e.what()) + advice};
  }

 private:
  /// On a server, a store whose reads don't wait for a synchronous standby.
  StoreSession& reports() {
    if (!session_.place().is_on_server()) return session_;
    if (!reports_)
      reports_.emplace(call_, StoreSession::Options{.log = &statistics_, .only_reads = true});
    return *reports_;
  }
  int work() {
    switch (plan_.how) {
      case How::once:
        return tick_until([](const OutboxStatus&) { return true; });
      case How::until_empty:
        return tick_until([](const OutboxStatus& status) { return waiting_in(status) == 0; });
      case How::forever:
        break;
    }
    crew_.start();
    if (plan_.dashboard) {
      const CrewDashboard options{
          .program = call_.app.name,
          .database = session_.name(),
          .broker_url = call_.settings().text("nats.url"),
          .worker = name(),
          .window = std::chrono::seconds{call_.settings().integer("worker.window")},
          .lease_ttl = call_.settings().duration("outbox.lease_ttl"),
          .heartbeat_ttl = call_.settings().duration("outbox.heartbeat_ttl")};
      WatchedCrew watched{crew_, statistics_, watch_, options};
      show_dashboard(watched, call_.out.has_color());
    }
    crew_.join();
    if (plan_.dashboard) call_.out.line(run_in_words());
    write_metrics_if_due(Steady::max());
    return done;
  }

  /// A summary to print once the dashboard is gone.
  std::string run_in_words() const {
    const Steady now = std::chrono::steady_clock::now();
    const Totals& ever = statistics_.look(now).ever;
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(now - begun_);
    return "Published " + in_digits(ever.published) + ", retried " + in_digits(ever.retried) +
           ", parked " + in_digits(ever.parked) + " in " + in_words(took) + ".";
  }

  LogSink* log_of(const Plan& plan) {
    if (plan.dashboard) return nullptr;
    return plan.how == How::forever ? static_cast<LogSink*>(&log_) : &log_but_the_end_;
  }

  /// The configured name, which several relays extend by a number, or the only relay's name.
  std::string name() const {
    const std::string& id = call_.settings().text("worker.id");
    return id.empty() || crew_.size() == 1 ? crew_.relay(0).worker() : id;
  }

  void ask_to_stop() {
    const std::lock_guard lock{mutex_};
    if (!plan_.dashboard && !plan_.silent && !call_.out.is_json()) {
      call_.out.note("Finishing messages in flight; a second signal exits at once.");
    }
    service_.stopping();
    if (ready_ != nullptr) ready_->request_stop();
  }

  void report(const Relay& relay, const RelayTick& tick) {
    const std::lock_guard lock{mutex_};
    const Steady now = std::chrono::steady_clock::now();
    published_ += tick.published;
    if (plan_.most > 0 && published_ >= plan_.most) crew_.request_stop();
    service_.ready();
    service_.alive(now);
    write_metrics_if_due(now);
    if (plan_.silent || plan_.dashboard) return;
    const bool is_endless = plan_.how == How::forever;
    const StatusWatch::Seen seen = watch_.look(is_endless ? 100ms : 0ms);
    const std::string state =
        state_of(statistics_.look(now), seen.status, crew_.stop_requested(), seen.is_stale);
    const TickReport shown{tick,           seen.status,          state,
                           relay.worker(), system_clock().now(), seen.problem};
    if (is_endless && !is_news(shown)) return;
    if (call_.out.is_json()) {
      print_json(call_.out, description::tick, shown);
    } else {
      call_.out.line(to_line(shown));
    }
    call_.out.flush();
  }

  /// True if an endless worker's tick did something or changed its state.
  bool is_news(const TickReport& report) {
    const RelayTick& tick = report.tick;
    std::string news{report.state};
    news.append(" ").append(std::to_string(tick.owned_count)).append(" ");
    news.append(to_string(tick.broker)).append(" ").append(report.store_problem);
    std::string& before = news_[std::string{report.worker}];
    const bool is_idle = tick.claimed + tick.published + tick.failed() + tick.skipped +
                             tick.fenced + tick.leased_count + tick.released_count ==
                         0;
    if (is_idle && news == before) return false;
    before = std::move(news);
    return true;
  }

  /// Answers /metrics and /readyz, on a thread of the server.
  HttpResponse answer(const HttpRequest& request) {
    const StatusWatch::Seen seen = watch_.look_closely(1s);
    const Figures done = statistics_.look(std::chrono::steady_clock::now());
    const Condition condition = condition_of(seen, done);
    if (request.path == "/readyz") return readiness(why_not_ready(condition));
    return metrics_page(page_of(seen, condition));
  }

  Condition condition_of(const StatusWatch::Seen& seen, const Figures& done) const {
    return {.done = done,
            .status = seen.status,
            .store_problem = seen.problem,
            .is_draining = crew_.stop_requested(),
            .max_lag = call_.settings().duration("worker.max_lag"),
            .heartbeat_ttl = call_.settings().duration("outbox.heartbeat_ttl")};
  }

  std::string page_of(const StatusWatch::Seen& seen, const Condition& condition) const {
    Facts facts = seen.beside;
    facts.at = seen.status.at;
    facts.store_problem = seen.problem;
    facts.outbox = seen.status;
    return metrics_text(condition) + metrics_text(facts.projectors, facts.processes) +
           findings_text(facts) + reported_.text();
  }

  void write_metrics() {
    const StatusWatch::Seen seen = watch_.look_closely(1s);
    const Figures done = statistics_.look(std::chrono::steady_clock::now());
    metrics_file_->write(page_of(seen, condition_of(seen, done)));
  }

  /// A full disk doesn't stop the relay.
  void write_metrics_if_due(Steady now) try {
    if (!metrics_file_ || now < next_metrics_) return;
    next_metrics_ = std::chrono::steady_clock::now() + metrics_every;
    write_metrics();
  } catch (const Exit& e) {
    statistics_.write(
        {.level = LogLevel::warning, .name = "worker.metrics_file", .message = e.what()});
  }

  static std::string way_out_of(const BrokerStatus& broker) {
    return broker.state == BrokerState::misconfigured ? "; 'stela doctor' says what to change" : "";
  }

  /// Refuses if all pending messages wait for an operator.
  void refuse_to_wait_for_an_operator(const OutboxStatus& status) {
    const PartitionStatus* stopped = held_up_by(status);
    if (stopped == nullptr) return;
    crew_.hand_over();
    throw Exit{failed, "all pending messages are in stopped partitions (" +
                           word_of(stopped->stopped) + ", partition " + stopped->id.label() +
                           "); 'outbox status' says what to do"};
  }

  template <class IsDone>
  int tick_until(IsDone is_done) {
    for (;;) {
      const RelayTick tick = crew_.run_once();
      const StatusWatch::Seen seen = watch_.look(0ms);
      if (!tick.broker.is_connected()) {
        crew_.hand_over();
        throw Exit{cannot_connect, "the broker at " + call_.settings().text("nats.url") + " is " +
                                       in_one_line(to_string(tick.broker)) +
                                       way_out_of(tick.broker)};
      }
      if (!tick.store_refusal.empty()) {
        crew_.hand_over();
        throw Exit{failed, in_one_line(tick.store_refusal)};
      }
      if (plan_.how == How::until_empty) refuse_to_wait_for_an_operator(seen.status);
      if (is_done(seen.status) || crew_.stop_requested()) break;
      crew_.pause(std::clamp<std::chrono::microseconds>(tick.backoff, 1ms, 1s));
    }
    crew_.hand_over();
    write_metrics_if_due(Steady::max());
    return signals_.stopped() ? interrupted : done;
  }

  Invocation& call_;
  const Plan plan_;
  const Steady begun_ = std::chrono::steady_clock::now();
  LogToStderr log_;
  AllButTheEnd log_but_the_end_{log_};
  Statistics statistics_;
  PrometheusMetrics reported_;
  ServiceManager service_;
  std::mutex mutex_;
  /// Guarded by mutex_: the crew, once it can be stopped.
  Crew* ready_ = nullptr;
  std::int64_t published_ = 0;
  /// Guarded by mutex_: the last line shown, by worker.
  std::map<std::string, std::string> news_;
  /// Constructed before anything that starts threads, and destroyed after it.
  Signals signals_;
  StoreSession session_;
  std::optional<StoreSession> reports_;
  StatusWatch watch_;
  Crew crew_;
  std::optional<HttpServer> metrics_;
  std::optional<MetricsFile> metrics_file_;
  Steady next_metrics_{};
};

int work(Invocation& call) {
  if (serves_all_tenants(call)) return relay_tenants(call);
  const Plan plan = plan_of(call);
  return Work{call, plan}.run();
}

}  // namespace

Command work_command() {
  return {
      .path = "outbox work",
      .summary = "Run a relay worker",
      .about =
          "Shows a dashboard on a terminal; elsewhere prints a line, or a JSON object with "
          "--json, for each tick that did something or found something changed. SIGTERM or "
          "Ctrl-C finishes messages in flight and hands "
          "partitions over; a second one exits at once. --once and --until-empty end with exit "
          "code 4 if the broker can't be reached, and 1 if the database refuses the worker, as "
          "where its role lacks rights. With --tenants, and without --tenant and --db, it serves "
          "all, each with a stream STREAM_TENANT; --once then ends with 1 if anything stands "
          "still.",
      .options = {db_option,
                  {"--nats", "URL", "the broker", "nats.url"},
                  {"--id", "NAME", "the worker's name (default: generated)", "worker.id"},
                  jetstream_option,
                  prefix_option,
                  {"--ensure-stream", "", "create the stream if it is missing",
                   "nats.ensure_stream"},
                  {"--workers", "N", "number of workers in this process (default 1)"},
                  {"--no-leasing", "", "for an outbox without leasing", "outbox.leasing"},
                  {"--once", "", "one tick, then exit"},
                  {"--until-empty", "", "exit once nothing is pending"},
                  {"--max", "N", "exit once N messages are published"},
                  {"--silent", "", "print nothing but errors"},
                  {"--metrics", "ADDR",
                   "serve /metrics, /healthz and /readyz on a loopback port, or HOST:PORT"},
                  label_option,
                  {"--metrics-file", "FILE",
                   "write the metrics there every few seconds, for a textfile collector"},
                  {"--interval-ms", "N", "a pause after each tick", "worker.interval_ms"},
                  {"--window", "N", "show sums of the last N seconds", "worker.window"}},
      .examples = {{"in the foreground",
                    "outbox work --db shop.db --nats nats://127.0.0.1:4222 "
                    "--stream SHOP --ensure-stream"},
                   {"publish what is pending, from cron", "outbox work --until-empty --silent"},
                   {"for all tenants", "outbox work --tenants tenants.db --stream SHOP"},
                   {"as a service", "outbox work --config /etc/stela/shop.toml --log json"}},
      .run = work};
}

}  // namespace stela::tool

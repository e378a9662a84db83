#include "commands/tenant_work.hpp"

#include "broker.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "description/description.hpp"
#include "http/server.hpp"
#include "store_session.hpp"
#include "tenant_registry.hpp"
#include "worker/notify.hpp"
#include "worker/pages.hpp"

#include <stela/eventstore/detail/erasures.hpp>
#include <stela/eventstore/operations.hpp>
#include <stela/outbox/tenant_relay.hpp>
#include <stela/projections/tenant_runner.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <thread>

namespace stela::tool {
namespace {

using namespace std::chrono_literals;

constexpr Field<TenantsStanding> standing_fields[] = {
    field<&TenantsStanding::tenants>(
        "tenants", {.metric = {.name = "stela_tenants", .help = "Tenants that are served."}}),
    field<&TenantsStanding::asked>(
        "asked", {.metric = {.name = "stela_tenants_asked",
                             .help = "Tenants that were asked since the start."}}),
    field<&TenantsStanding::answered>(
        "answered",
        {.metric = {.name = "stela_tenants_answered", .help = "Tenants whose stores answer."}}),
    field<&TenantsStanding::served>(
        "served", {.metric = {.name = "stela_tenants_served",
                              .help = "Tenants that something is done for now."}}),
    field<&TenantsStanding::waiting>(
        "waiting",
        {.metric = {.name = "stela_tenants_waiting", .help = "Tenants that wait for a turn."}}),
    field<[](const TenantsStanding& all) { return all.troubles.size(); }>(
        "standing_still", {.metric = {.name = "stela_tenants_standing_still",
                                      .help = "Tenants that something stands still for."}}),
};
constexpr Description<TenantsStanding> standing_description{standing_fields};

std::string standing_in_words(const TenantsStanding& all) {
  std::string text = counted(all.tenants, "tenant") + ": " + in_digits(all.asked) + " asked, " +
                     in_digits(all.answered) + " answered, " + in_digits(std::ssize(all.troubles)) +
                     " stand still";
  for (const TenantsStanding::Trouble& one : all.troubles) {
    text += "\n  " + one.tenant + ": " + in_one_line(one.what);
  }
  return text;
}

/// Prints what is done for tenants, and what stands still whenever that changes.
class Report {
 public:
  Report(Invocation& call, bool is_silent) : call_{call}, is_silent_{is_silent} {
    for (const std::string& name : call.arguments.all("--label")) done_.emplace(name, 0);
    done_.emplace("other", 0);
  }

  void done_for(const std::string& tenant, std::int64_t done, const char* what) {
    const std::lock_guard lock{mutex_};
    const auto labelled = done_.find(tenant);
    (labelled == done_.end() ? done_.at("other") : labelled->second) += done;
    if (is_silent_ || done == 0) return;
    if (call_.out.is_json()) {
      call_.out.json(to_json({{"tenant", tenant}, {what, done}}));
    } else {
      call_.out.line(tenant + ": " + in_digits(done) + " " + what);
    }
    call_.out.flush();
  }
  void stand(const TenantsStanding& standing) {
    const std::lock_guard lock{mutex_};
    std::string text = standing_in_words(standing);
    if (is_silent_ || text == last_) return;
    last_ = std::move(text);
    if (call_.out.is_json()) {
      print_json(call_.out, standing_description, standing, {{"troubles", troubles_of(standing)}});
    } else {
      call_.out.line(last_);
    }
    call_.out.flush();
  }
  TenantCounts done() {
    const std::lock_guard lock{mutex_};
    return done_;
  }

 private:
  static Json troubles_of(const TenantsStanding& standing) {
    return json_list(standing.troubles, [](const TenantsStanding::Trouble& one) {
      return to_json({{"tenant", one.tenant}, {"error", in_one_line(one.what)}});
    });
  }

  Invocation& call_;
  const bool is_silent_;
  std::mutex mutex_;
  TenantCounts done_;
  std::string last_;
};

void refuse_options(const Invocation& call, std::initializer_list<const char*> options) {
  for (const char* const option : options) {
    if (call.arguments.has(option)) {
      throw Misuse{std::string{option} + " is for one database: name it by --tenant or --db"};
    }
  }
}

/// Runs the work, and reports, until it is stopped, or once.
template <class Work>
int work_for_all(Invocation& call, Work& work, Report& report, bool is_once) {
  ServiceManager service;
  std::stop_source stop;
  const Signals signals{[&] {
    service.stopping();
    stop.request_stop();
  }};
  std::optional<HttpServer> metrics;
  if (const auto address = call.arguments.text("--metrics")) {
    metrics.emplace(parse_address(*address, "the port of metrics"),
                    HttpPages{.at_once = other_page, .in_time = [&](const HttpRequest& request) {
                                const TenantsStanding standing = work.standing();
                                if (request.path == "/readyz") return readiness({});
                                return metrics_page(metrics_text(standing, report.done()));
                              }});
    call.out.note("Metrics at " + metrics->url() + "/metrics");
  }
  if (is_once) {
    work.run_once();
    const TenantsStanding standing = work.standing();
    report.stand(standing);
    return standing.troubles.empty() ? done : failed;
  }
  service.ready();
  std::mutex mutex;
  std::condition_variable_any never;
  const std::jthread reporter{[&](std::stop_token end) {
    std::unique_lock lock{mutex};
    while (!never.wait_for(lock, end, 200ms, [&] { return end.stop_requested(); })) {
      service.alive(std::chrono::steady_clock::now());
      report.stand(work.standing());
    }
  }};
  work.run(stop.get_token());
  return done;
}

}  // namespace

std::string metrics_text(const TenantsStanding& standing, const TenantCounts& done) {
  MetricWriter writer;
  write_metrics(writer, standing_description, standing);
  writer.begin("stela_tenants_done_total", "counter", "Messages published, or events read.");
  for (const auto& [tenant, count] : done) {
    writer.value(static_cast<double>(count), label_text("tenant", tenant));
  }
  return std::move(writer).text();
}

int relay_tenants(Invocation& call) {
  refuse_options(
      call, {"--workers", "--no-leasing", "--max", "--metrics-file", "--interval-ms", "--window"});
  Tenants tenants = open_registry(call, {.create = false});
  nats::PublisherOptions broker = broker_options(call.settings(), Fence::stream, by_stream());
  RelayOptions relay = relay_options(call.settings());
  TenantRelay all{tenants,
                  [&](const std::string& tenant, const Outbox& outbox) {
                    nats::PublisherOptions options = broker;
                    options.tenant = tenant;
                    options.fence = outbox.fence();
                    options.partitioner = &outbox.partitioner();
                    return std::make_unique<nats::Publisher>(options);
                  },
                  {.relay = relay}};
  Report report{call, call.arguments.has("--silent")};
  all.on_tick([&](const std::string& tenant, const RelayTick& tick) {
    report.done_for(tenant, tick.published, "published");
  });
  return work_for_all(call, all, report,
                      call.arguments.has("--once") || call.arguments.has("--until-empty"));
}

int run_tenants(Invocation& call) {
  if (!call.app.projections) {
    throw Exit{failed, "'" + call.app.name +
                           "' has no projectors: an application that embeds stela::tool has, once "
                           "it sets app.projections"};
  }
  refuse_options(call, {"--keys"});
  Tenants tenants = open_registry(call, {.create = false});
  tenants.furnish([&](TenantStore& tenant) {
    if (tenant.keys() == nullptr && has_personal_fields(tenant.store())) {
      throw Misuse{
          "events have sealed fields, which handlers would take for empty, and the registry "
          "has no place of keys"};
    }
    // Reactions append.
    for (const auto& required : StoreOperations{tenant.store()}.required_participants()) {
      if (required.name != "outbox") continue;
      if (const Partitioner* known = find_partitioner(call.app, required.detail)) {
        tenant.keep<Outbox>(OutboxOptions{.partitioner = known});
      }
    }
  });
  TenantRunner all{tenants,
                   call.app.projections,
                   {.runner = {.worker = call.arguments.text("--id").value_or("")}}};
  Report report{call, false};
  all.on_tick([&](const std::string& tenant, const RunnerTick& tick) {
    report.done_for(tenant, tick.scanned, "events");
  });
  return work_for_all(call, all, report, call.arguments.has("--once"));
}

}  // namespace stela::tool

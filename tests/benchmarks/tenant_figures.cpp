// What tenants cost that have nothing to do.
#include "bench.hpp"
#include "memory_broker.hpp"
#include "raw_events.hpp"
#include "support/process.hpp"
#include "tenants/registry.hpp"

#include <stela/outbox/tenant_relay.hpp>
#include <stela/tenants.hpp>

#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace stela::bench {
namespace {

using namespace std::chrono_literals;

constexpr int active = 10;

std::string name_of(int i) {
  return "t" + std::to_string(i);
}

/// A connection to a tenant's broker, which outlives it.
class Connected final : public Publisher {
 public:
  explicit Connected(std::shared_ptr<MemoryPublisher> broker) : broker_{std::move(broker)} {}

  bool can(Fence fence) const noexcept override { return broker_->can(fence); }
  bool can(Codec codec) const noexcept override { return broker_->can(codec); }
  void connect(std::uint64_t session, AnswerSink& sink) override {
    broker_->connect(session, sink);
  }
  void disconnect() noexcept override { broker_->disconnect(); }
  void publish(const OutgoingMessage& message) override { broker_->publish(message); }
  void read_back(std::uint64_t request, PartitionId partition, std::uint64_t from) override {
    broker_->read_back(request, partition, from);
  }
  void probe(std::uint64_t request) override { broker_->probe(request); }
  void flush() override { broker_->flush(); }

 private:
  std::shared_ptr<MemoryPublisher> broker_;
};

/// Seconds of processor time that this process has used.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void append_to_active(Tenants& tenants) {
  for (int i = 0; i < active; ++i) {
    const NewEvent event{"order.placed", 1, true, R"({"cents":4200})"};
    const StreamAppend one{StreamId::of("order", "1"), ExpectedVersion::any(), {&event, 1}};
    tenants.use(name_of(i))->append({.streams = {&one, 1}});
  }
}

/// The processor time of a relay for `count` tenants, ten of which get an event ten times a second.
double relay_for(const Folder& folder, int count, std::chrono::seconds time) {
  const std::string of_count = std::to_string(count);
  Tenants tenants = open_tenants(folder.file(of_count + ".db"), {.at = of_count + "/{tenant}.db"});
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<MemoryPublisher>> brokers;
  TenantRelay relay{tenants, [&](const std::string& tenant, const Outbox&) {
                      const std::lock_guard lock{mutex};
                      auto& broker = brokers[tenant];
                      if (!broker) broker = std::make_shared<MemoryPublisher>();
                      return std::make_unique<Connected>(broker);
                    }};
  if (tenants.list().empty()) {
    for (int i = 0; i < count; ++i) tenants.create(name_of(i));
  }
  const std::jthread running{[&](std::stop_token stop) { relay.run(stop); }};
  const auto until = [&](const auto& holds) {
    if (!test::eventually(holds, 300s))
      throw std::runtime_error{"the tenants aren't asked in time"};
  };
  until([&] { return relay.standing().answered == count; });
  // One whose turn ended because the next waited for a thread gets another with the next event.
  until([&] {
    append_to_active(tenants);
    return relay.standing().served == active;
  });
  const double before = processor_seconds();
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    append_to_active(tenants);
    test::is_stopped_within(100ms, {});
  }
  const double used = processor_seconds() - before;
  for (const auto& trouble : relay.standing().troubles) {
    throw std::runtime_error{trouble.tenant + " stands still: " + trouble.what};
  }
  return used;
}

void idle_figure(Bench& bench) {
  const std::string name = "tenants.idle";
  if (!bench.begins(name)) return;
  const int many = bench.sized(20, 1'000, 1'000);
  const std::chrono::seconds time{bench.sized(1, 5, 10)};
  std::vector<double> of_many, of_few, ratio;
  for (int round = 0; round < bench.rounds(3); ++round) {
    // The streams begin anew with each relay, and so do their stores.
    const Folder fresh{bench.places().tmpfs};
    of_few.push_back(relay_for(fresh, active, time));
    of_many.push_back(relay_for(fresh, many, time));
    ratio.push_back(of_many.back() / of_few.back());
  }
  bench.report().add({.name = name,
                      .what = "processor time of a relay for " + std::to_string(many) +
                              " tenants with 10 active ones, to one for these 10",
                      .mode = "full",
                      .place = Place::tmpfs,
                      .unit = "s",
                      .stela = spread_of(of_many).median,
                      .raw = spread_of(of_few).median,
                      .ratio = spread_of(ratio),
                      .goal = at_most(1.2)});
}

void start_figure(Bench& bench) {
  const std::string name = "tenants.start";
  if (!bench.begins(name)) return;
  const Folder folder{bench.places().disk};
  const int count = bench.sized(50, 10'000, 10'000);
  const std::string path = folder.file("tenants.db");
  {
    TenantsOptions options{.at = "data/{tenant}.db"};
    options.files.durability = sqlite::Durability::relaxed;
    Tenants tenants = open_tenants(path, options);
    for (int i = 0; i < count; ++i) tenants.registry().create(name_of(i), make_uuid(), {});
  }
  std::vector<double> times, raw, ratio;
  double bytes_each = 0;
  for (int round = 0; round < bench.rounds(3); ++round) {
    const std::size_t before = mallinfo2().uordblks;
    std::optional<Tenants> tenants;
    times.push_back(seconds([&] { tenants.emplace(open_tenants(path)); }));
    bytes_each = static_cast<double>(mallinfo2().uordblks - before) / count;
    std::size_t bytes = 0;
    raw.push_back(seconds([&] {
      RawReader reader{path};
      reader.read_all([&](auto, auto payload) { bytes += payload.size(); });
    }));
    if (bytes == 0) throw std::runtime_error{"the registry has no events"};
    ratio.push_back(times.back() / raw.back());
  }
  bench.report().add({.name = name,
                      .what = "opening a registry of " + std::to_string(count) +
                              " tenants, to reading its events by bare statements",
                      .mode = "read",
                      .place = Place::disk,
                      .unit = "s",
                      .stela = spread_of(times).median,
                      .raw = spread_of(raw).median,
                      .ratio = spread_of(ratio),
                      .goal = limit(2),
                      .more = {{"bytes_each", bytes_each}}});
}

}  // namespace

void tenant_figures(Bench& bench) {
  start_figure(bench);
  idle_figure(bench);
}

}  // namespace stela::bench

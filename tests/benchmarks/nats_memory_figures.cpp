// How much memory a relay takes that has a long backlog before it.
#include "bench.hpp"
#include "memory.hpp"
#include "raw_nats_relay.hpp"
#include "shop.hpp"

#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <iostream>
#include <stdexcept>

namespace stela::bench {
namespace {

void relay_everything(const std::string& path, const std::string& url, bool raw) {
  if (raw) {
    RawNats nats{url};
    relay_bare(path, nats, {.chained = true});
    return;
  }
  auto store = sqlite::open(path);
  Outbox outbox{store};
  nats::Publisher publisher{{.url = url}};
  Relay{outbox, publisher}.run_once();
}

}  // namespace

int measure_relay_memory(const std::string& path, const std::string& url, bool raw) {
  const double before = memory_kib("VmRSS");
  relay_everything(path, url, raw);
  const double after = memory_kib("VmHWM");
  if (RawDatabase{path, {}}.integer("SELECT count(*) FROM outbox_messages") > 0) {
    throw std::runtime_error{"not everything was relayed"};
  }
  std::cout << (after - before) / 1024 << '\n';
  return 0;
}

void nats_memory_figures(Bench& bench) {
  const std::string name = "memory.relay";
  if (!bench.begins(name)) return;
  const test::NatsServer server;
  const Folder folder{bench.places().disk};
  const std::string path = folder.file("shop.db");
  const std::size_t streams = bench.sized<std::size_t>(10, 2'000, 20'000);
  const std::size_t each = 100;
  make_shop(path, {.streams = streams, .events_each = each});
  const auto measure = [&](const char* how) {
    RawNats{server.url()}.make_stream();
    refill_outbox(path);
    return in_own_process("--measure-relay-memory '" + path + "' '" + server.url() + "' " + how);
  };
  const double stela = measure("stela");
  const double raw = measure("raw");
  bench.report().add({.name = name,
                      .what = "peak of memory over the start while relaying a backlog of " +
                              in_digits(static_cast<double>(streams * each)),
                      .mode = "relaxed",
                      .place = Place::disk,
                      .unit = "MiB",
                      .stela = stela,
                      .raw = raw,
                      .ratio = spread_of({stela / raw}),
                      .goal = limit(64)});
}

}  // namespace stela::bench

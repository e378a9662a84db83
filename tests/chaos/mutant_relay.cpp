#include "chaos/mutant_relay.hpp"

#include "database/database.hpp"
#include "driver/mailbox.hpp"
#include "tables/relay_store.hpp"

#include <stela/framework/uuid.hpp>

#include <span>
#include <utility>

namespace stela::chaos {
namespace {

class AnyRandom final : public Random {
 public:
  void fill(std::span<std::uint8_t> bytes) override {
    for (std::uint8_t& byte : bytes) byte = make_uuid().bytes()[15];
  }
};

class Nobody final : public relay::Observer {
 public:
  void on_incident(const relay::Incident&) override {}
};

}  // namespace

void run_mutant(Outbox& outbox, Publisher& publisher, RelayOptions options, mutants::Mutant mutant,
                std::stop_token stop) {
  options.worker = "mutant:" + make_uuid().to_string();
  outbox::RelayStore store{outbox.store(), true};
  AnyRandom random;
  Nobody observer;
  relay::Mailbox mailbox{outbox.store()};
  const Clock& clock = outbox.store().database().clock();
  const auto worker = mutants::make_worker(mutant, options, outbox.fence(),
                                           {store, publisher, clock, random, observer, mailbox});
  const std::stop_callback wake{stop, [&] { mailbox.wake(); }};
  worker->start();
  bool stopping = false;
  while (!worker->is_stopped()) {
    if (stop.stop_requested() && !std::exchange(stopping, true)) worker->stop();
    for (const Answer& answer : mailbox.answers()) worker->on_answer(answer);
    worker->run_due();
    if (!worker->is_stopped()) mailbox.wait_until(worker->deadline());
  }
}

}  // namespace stela::chaos

// Simulated processes that consume what simulated relays publish, and what happens to them.
#include "simulation/story.hpp"

#include "simulation/consumers/director.hpp"
#include "simulation/consumers/process.hpp"
#include "simulation/consumers/town.hpp"

#include <stela/nats/inbox.hpp>

#include <functional>

namespace stela::sim {
namespace {

using mutants::Mutant;

constexpr int most_partitions = 2;
constexpr const char* prefixes[] = {"THINGS", "GOODS"};

/// The writers of a town: one, or two, each with streams of its own.
void settle_writers(Town& town) {
  Chance& chance = town.chance;
  const int count = chance.happens(0.3) ? 2 : 1;
  for (int i = 0; i < count; ++i) {
    town.writers.push_back(std::make_unique<Writer>(
        town.stage, chance, town.broker, town.events,
        Writer::Options{.number = i,
                        .streams = static_cast<int>(chance.between(2, 6)),
                        .prefix = prefixes[i],
                        .is_fenced = chance.happens(0.8),
                        .partitions = town.resizes && chance.happens(0.5) ? most_partitions : 1,
                        .trace = town.plan.trace}));
  }
}

void draw_troubles(Town& town) {
  Chance& chance = town.chance;
  town.kill = chance.happens(0.7) ? 0.001 : 0;
  town.pause = chance.happens(0.7) ? 0.001 : 0;
  town.trouble = chance.happens(0.7) ? 0.05 : 0;
  town.busy = chance.happens(0.3) ? 0.01 : 0;
  town.resizes = chance.happens(0.4);
  town.breaks_streams = chance.happens(0.4);
  town.restores = !town.resizes && !town.breaks_streams && chance.happens(0.3);
  town.cuts_lines = chance.happens(0.6);
  town.has_clerk = chance.happens(0.6);
  town.has_relay_trouble = chance.happens(0.5);
  if (chance.happens(0.2)) town.on_failure = nats::OnFailure::park_message;
  // A reader that comes late to a stream of a new generation would skip its first messages.
  if (!town.resizes && chance.happens(0.2)) town.start = nats::ConsumerStart::now;
  // With a filter a missing message can't be noticed: so none may be missing.
  const bool may_filter = !town.breaks_streams && !town.restores && !town.has_relay_trouble;
  if (may_filter && chance.happens(0.3)) town.filter = "things.thing.happened";
  town.opens_at = chance.happens(0.3) ? chance.below(20 * second) : 0;
}

Story consume_for_a_while(const StoryPlan& plan) {
  Town town{plan};
  draw_troubles(town);
  settle_writers(town);
  {
    Store store = sqlite::open(town.file(), {.durability = sqlite::Durability::relaxed});
    nats::migrate_inbox(store);
  }
  town.audit = std::make_unique<Audit>(town.file(),
                                       Audit::Subject{.stage = town.stage,
                                                      .broker = town.broker,
                                                      .events = town.events,
                                                      .writers = town.writers,
                                                      .filter = town.filter,
                                                      .max_attempts = max_attempts,
                                                      .unknown_version_wait = unknown_version_wait,
                                                      .trace = plan.trace});
  if (!town.filter.empty()) town.meet("filters");
  town.neighbour = std::make_unique<test::RawSqlite>(town.file());
  town.stage.on_wait([&] {
    town.unlock();
    town.audit->look();
  });

  std::vector<std::unique_ptr<Process>> processes;
  std::vector<std::function<void()>> lives;
  const bool has_many = town.resizes || town.writers.size() > 1;
  for (const auto& writer : town.writers) {
    for (const std::string& stream : writer->broker_streams(town.resizes ? most_partitions : 1)) {
      for (auto left = town.chance.between(1, has_many ? 2 : 3); left > 0; --left) {
        processes.push_back(std::make_unique<Process>(town, stream));
        lives.emplace_back([&process = *processes.back()] { process.live(); });
      }
    }
  }
  std::vector<std::unique_ptr<Author>> authors;
  for (auto& writer : town.writers) {
    authors.push_back(std::make_unique<Author>(town, *writer));
    lives.emplace_back([&author = *authors.back()] { author.live(); });
  }
  Clerk clerk{town};
  if (town.has_clerk) lives.emplace_back([&] { clerk.live(); });
  Director director{town, processes, authors};
  lives.emplace_back([&] { director.live(); });
  town.stage.run(lives);
  return {.contradiction = town.audit->contradiction(),
          .hash = town.audit->hash(),
          .met = town.audit->met};
}

constexpr std::string_view consumer_demands[] = {
    "kills",
    "kills inside a transaction",
    "pauses",
    "processes that hang for ever",
    "processes that are asked to leave",
    "take-overs",
    "effects",
    "gaps",
    "parked",
    "parked behind others",
    "parked messages handled later",
    "other histories",
    "foreign messages parked",
    "discarded by an operator",
    "events before the beginning",
    "handlers that kill",
    "handlers that fail",
    "handlers that fail for good",
    "handlers that run out of memory",
    "events of a version that isn't known",
    "locks of another program",
    "streams that are emptied",
    "streams that are purged at the front",
    "messages that are deleted",
    "streams that are made again",
    "streams that lose their end",
    "resizes",
    "filters",
    "copies that a relay was asked for",
    "messages that a relay parks",
};

constexpr StoryMutant consumer_mutants[] = {
    {Mutant::position_apart, "took effect twice"},
    {Mutant::lease_not_checked, "that doesn't hold the lease"},
    {Mutant::copies_are_handled, "took effect twice"},
    {Mutant::history_is_a_copy, "took effect before", 29},
    {Mutant::history_by_its_time, "was skipped", 316},
    {Mutant::parked_is_passed, "took effect before"},
    {Mutant::waiting_is_charged, "still to come"},
    {Mutant::gap_is_kept_secret, "took effect before"},
    {Mutant::late_is_a_copy, "was skipped"},
    {Mutant::late_comes_again, "took effect twice", 88},
    {Mutant::generation_is_not_awaited, "still to come"},
    {Mutant::first_resize_is_awaited_only, "still to come"},
    {Mutant::those_who_wait_are_awaited, "comes to no rest"},
    {Mutant::ends_without_the_filter, "comes to no rest", 263},
    {Mutant::ends_are_kept, "comes to no rest", 165},
    {Mutant::beginning_is_forgotten, "took effect before", 3147},
    {Mutant::place_is_not_compared, "was skipped", 10},
    {Mutant::stream_is_trusted, "was skipped", 12},
    {Mutant::forgotten_reader_stays, "comes to no rest", 5},
    {Mutant::stream_is_looked_at_once, "comes to no rest", 137},
    {Mutant::failure_is_committed, "took effect twice"},
    {Mutant::retried_stays_parked, "while it is parked"},
    {Mutant::parked_backwards, "took effect before"},
    {Mutant::charge_is_kept, "was parked after", 10},
    {Mutant::death_is_not_charged, "killed"},
    {Mutant::unknown_is_a_failure, "before a newer program"},
};

}  // namespace

const StoryKind consumers{consume_for_a_while, consumer_demands, consumer_mutants};

}  // namespace stela::sim

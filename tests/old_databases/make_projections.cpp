// Projectors in every state: rebuilds that were stopped and killed, what failed and what was
// parked.
#include "old_databases/scene.hpp"

#include <stela/framework/error.hpp>
#include <stela/projections.hpp>

#include <stdexcept>

namespace stela::test::old {
namespace {

using namespace std::chrono_literals;

Hook throwing_at(std::int64_t first, std::int64_t last) {
  return [first, last](const StoredEvent& event) {
    if (event.sequence.value() < first || event.sequence.value() > last) return;
    throw std::runtime_error{"can't take it"};
  };
}

/// Ends on an event that its handler doesn't take.
void stop_rebuild(Projections& projections, std::string_view name) {
  try {
    (void)Replayer{projections}.run({.projectors = {std::string{name}}});
  } catch (const UsageError&) {
    return;
  }
  throw std::runtime_error{"the rebuild wasn't stopped"};
}

}  // namespace

void make_projected(const std::filesystem::path& out) {
  Scene scene{out, "projected"};
  auto store = sqlite::open(scene.database(), scene.options(Codec::json, sqlite::Durability::full));
  make_history(store);
  const std::int64_t base = store.last_sequence().value();
  bool is_rebuilding = false;
  bool is_resumed = false;
  bool is_killed = false;
  const auto stop = [&](const StoredEvent& event) {
    if (is_rebuilding && event.sequence.value() == base + 3) throw std::runtime_error{"stop"};
  };
  const auto kill = [&](const StoredEvent& event) {
    if (!is_rebuilding) return;
    if (event.sequence.value() == base + 2 && !is_resumed) throw std::runtime_error{"stop"};
    if (event.sequence.value() != base + 4) return;
    scene.freeze();
    is_killed = true;
    throw std::runtime_error{"as if it had been killed"};
  };
  Projections projections{store};
  projections.add_inline(Listing<Inline>{});
  projections.add(Listing<Live>{});
  projections.add(Listing<Stopped>{stop});
  projections.add(Listing<Killed>{kill});
  projections.add(Listing<Halted>{throwing_at(base + 5, base + 5)}, {.max_attempts = 1});
  projections.add(Listing<Parking>{throwing_at(base + 1, base + 3)},
                  {.on_error = OnError::park, .max_attempts = 1});
  projections.add_reaction(Reserve{throwing_at(base + 4, base + 4)},
                           {.start = ReactionStart::beginning});
  for (int i = 1; i <= 6; ++i) place(store, std::to_string(i));
  {
    Runner runner{projections, {.worker = "runner"}};
    runner.run_once();
    ProjectionOperations{store}.skip(Parking::text, GlobalSequence{base + 2});
    (void)Replayer{projections}.run({.projectors = {std::string{Live::text}}});
    runner.run_once();
  }
  (void)Replayer{projections}.run(
      {.projectors = {std::string{Live::text}},
       .filter = {.categories = {"order"}, .to = GlobalSequence{base + 4}}});
  is_rebuilding = true;
  stop_rebuild(projections, Stopped::text);
  ship(store, "1");
  ProjectionOperations{store}.retry(Parking::text, GlobalSequence{base + 3});
  stop_rebuild(projections, Killed::text);
  is_resumed = true;
  scene.advance_to(frozen_after);
  stop_rebuild(projections, Killed::text);
  if (!is_killed) throw std::runtime_error{"no rebuild was killed"};
}

}  // namespace stela::test::old

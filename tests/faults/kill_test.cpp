// A writing process is killed in every place of its work; what it was promised must be there.
#include "faults/evidence.hpp"
#include "faults/settings.hpp"
#include "faults/writing_process.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace stela::kill_test {
namespace {

namespace fs = std::filesystem;
using test::Attempt;
using test::AttemptId;
using test::Entry;
using test::Place;

/// How often what was seen.
struct Tally {
  std::map<Place, int> places;
  int kills = 0;
  int promises = 0;
  int present = 0;
  int absent = 0;

  void print() const {
    std::cout << kills << " kills, " << promises << " acknowledged appends, all there; of those "
              << "under way " << present << " stood and " << absent << " didn't\n";
    for (const auto& [place, count] : places) {
      std::cout << "  " << std::string(static_cast<std::size_t>(count * 60 / kills), '#') << ' '
                << count << ' ' << to_string(place) << '\n';
    }
  }
};

/// Where the kills fall, again and again: most of them inside a transaction.
constexpr std::array places{
    Place::at_begin,      Place::before_commit, Place::committing,    Place::at_begin,
    Place::after_commit,  Place::before_commit, Place::nowhere,       Place::at_begin,
    Place::checkpointing, Place::before_commit, Place::committing,    Place::opening,
    Place::at_begin,      Place::committing,    Place::before_commit, Place::after_commit,
    Place::closing,       Place::at_begin,      Place::committing,    Place::before_commit};

/// About how many calls to its files a process makes there, before it goes on.
std::int64_t calls_in(Place place) {
  switch (place) {
    case Place::opening:
      return 60;
    case Place::committing:
    case Place::checkpointing:
    case Place::closing:
      return 12;
    default:
      return 1;
  }
}

/// One database that process after process writes to, each of them killed.
class KilledWriter {
 public:
  KilledWriter(sqlite::Durability durability, std::uint64_t seed, Tally& tally)
      : durability_{durability}, seed_{seed}, dice_{seed}, tally_{tally} {}

  /// What is wrong afterwards, or empty.
  std::string kill_one(Place place);
  /// At the very end, on the database itself.
  std::string flaw() const { return test::flaw_of(path()); }

 private:
  std::string path() const { return dir_.file("shop.db"); }
  std::string copy() const;
  /// Returns when it has halted in that place, or ended, having read what it was promised.
  void send_to(Place place, test::Process& child, test::WritingState& state, const test::Pipe& pipe,
               std::string& promised);
  std::string compare(test::WritingState& state, const std::string& promised);
  std::string judge_new(const std::vector<Entry>& entries, test::WritingState& state,
                        test::Attempts& promises);
  std::string resolve(Store& store, const AttemptId& id, bool stands) const;

  test::TempDir dir_;
  const sqlite::Durability durability_;
  const std::uint64_t seed_;
  test::Dice dice_;
  Tally& tally_;
  int run_ = 0;
  /// What was there after the last kill.
  std::vector<Entry> known_;
};

void KilledWriter::send_to(Place place, test::Process& child, test::WritingState& state,
                           const test::Pipe& pipe, std::string& promised) {
  const auto wait_until = [&](const std::function<bool()>& condition) {
    test::eventually([&] {
      promised += pipe.read_available();
      return condition() || !child.is_running();
    });
  };
  if (place != Place::opening) {
    const auto wanted = static_cast<std::size_t>(dice_.between(40, 440));
    wait_until([&] { return promised.size() > wanted; });
  }
  if (place == Place::nowhere) return;
  state.halt_at = place;
  if (place == Place::closing) state.stop = true;
  wait_until([&] { return state.halted.load(); });
}

std::string KilledWriter::kill_one(Place place) {
  constexpr int checkpoint_pages[] = {8, 60, 4000};
  const test::WritingOptions options{
      .path = path(),
      .durability = durability_,
      .checkpoint_pages = checkpoint_pages[dice_.below(place == Place::checkpointing ? 2 : 3)],
      .seed = seed_,
      .run = ++run_};
  const test::Shared<test::WritingState> state;
  state->halt_at_call = static_cast<int>(1 + dice_.below(calls_in(place)));
  if (place == Place::opening) state->halt_at = place;
  const test::Pipe pipe;
  std::string promised;
  test::Process child{[&] { write_until_stopped(options, *state, pipe); }};
  send_to(place, child, *state, pipe, promised);
  const bool was_running = child.is_running();
  child.kill();
  // One that closed with fewer calls has gone well, too.
  const bool has_closed = !was_running && place == Place::closing && child.wait() == 0;
  if (!has_closed && !was_running) return "the process ended before it was killed";
  if (!has_closed && !state->halted && place != Place::nowhere) {
    return "the process never came to the place where it was to be killed";
  }
  promised += pipe.read_available();
  ++tally_.kills;
  ++tally_.places[place];
  return compare(*state, promised);
}

/// The parent looks at a copy, so that the next process meets what the kill left.
std::string KilledWriter::copy() const {
  const fs::path to = dir_.path() / "copy";
  fs::remove_all(to);
  fs::create_directory(to);
  for (const std::string suffix : {"", "-wal", "-journal"}) {
    if (fs::exists(path() + suffix)) fs::copy_file(path() + suffix, to / ("shop.db" + suffix));
  }
  return to / "shop.db";
}

std::string KilledWriter::compare(test::WritingState& state, const std::string& promised) {
  const std::string copied = copy();
  auto store = sqlite::open(copied);
  const std::vector<Entry> entries = test::entries_of(store);
  if (std::string flaw = test::flaw_in(entries); !flaw.empty()) return flaw;
  if (std::string flaw = test::quick_integrity_of(copied); flaw != "ok") return flaw;
  if (entries.size() < known_.size() ||
      !std::equal(known_.begin(), known_.end(), entries.begin())) {
    return "what was there before has changed";
  }
  auto promises = test::parse_promises(run_, promised);
  tally_.promises += static_cast<int>(promises.size());
  if (std::string flaw = judge_new(entries, state, promises); !flaw.empty()) return flaw;

  for (int thread = 0; thread < test::WritingState::threads; ++thread) {
    const AttemptId last{run_, thread, state.begun[static_cast<std::size_t>(thread)]};
    if (last.number == 0) continue;
    const bool stands = promises.contains(last);
    if (std::string flaw = resolve(store, last, stands); !flaw.empty()) return flaw;
  }
  known_ = entries;
  return {};
}

/// What was added must be attempts of this run, each whole, every one that was promised, and of
/// each thread at most one that wasn't. Those go to `promises`, too.
std::string KilledWriter::judge_new(const std::vector<Entry>& entries, test::WritingState& state,
                                    test::Attempts& promises) {
  const test::Attempts promised = promises;
  test::Attempts found;
  std::string flaw = test::find_attempts(seed_, entries, known_.size(), found);
  if (flaw.empty()) flaw = test::missing_promise(promised, found);
  if (!flaw.empty()) return flaw;
  for (int thread = 0; thread < test::WritingState::threads; ++thread) {
    const AttemptId last{run_, thread, state.begun[static_cast<std::size_t>(thread)]};
    if (last.number == 0 || promised.contains(last)) continue;
    ++(found.contains(last) ? tally_.present : tally_.absent);
    if (found.contains(last)) promises.emplace(*found.find(last));
  }
  return found.size() == promises.size() ? std::string{} : "there is what nobody began";
}

/// An append with an id is finished by appending it again; a caller's rows stand beside its events.
std::string KilledWriter::resolve(Store& store, const AttemptId& id, bool stands) const {
  const Attempt attempt = Attempt::of(seed_, id);
  if (attempt.kind == Attempt::Kind::with_id) {
    const AppendResult again = append(store, attempt.appends, attempt.append_id);
    if (again.repeated != stands) return "an append id doesn't tell whether its append stands";
  }
  if (attempt.kind == Attempt::Kind::with_rows) {
    if (test::number_in(sqlite::path(store),
                        "SELECT count(*) FROM sqlite_schema WHERE name = 'notes'")) {
      const auto rows = test::number_in(
          sqlite::path(store), "SELECT count(*) FROM notes WHERE payload LIKE '{\"attempt\":\"" +
                                   std::to_string(id.run) + '.' + std::to_string(id.thread) + '.' +
                                   std::to_string(id.number) + "\",%'");
      const auto expected = stands ? static_cast<std::int64_t>(attempt.entries().size()) : 0;
      if (rows != expected) return "the caller's rows don't stand beside the events";
    } else if (stands) {
      return "the caller's table is missing";
    }
  }
  return {};
}

void kill_many(sqlite::Durability durability) {
  const std::int64_t kills = test::setting("STELA_FAULTS_KILLS", 220) / 2;
  constexpr std::int64_t kills_of_one_database = 22;
  const std::uint64_t seed = test::seed_of_test();
  Tally tally;
  for (std::uint64_t database = 0; tally.kills < kills; ++database) {
    KilledWriter writer{durability, test::mix(seed, database), tally};
    for (int i = 0; i < kills_of_one_database; ++i) {
      const Place place = places[static_cast<std::size_t>(tally.kills) % places.size()];
      ASSERT_EQ(writer.kill_one(place), "") << "kill " << tally.kills << ", " << to_string(place);
    }
    ASSERT_EQ(writer.flaw(), "");
  }
  tally.print();
  // Those that had committed, and those that had only begun.
  EXPECT_GE(tally.present, tally.places[Place::after_commit]);
  EXPECT_GE(tally.absent, tally.places[Place::at_begin] + tally.places[Place::before_commit]);
  EXPECT_GT(tally.promises, tally.kills);
}

TEST(KilledWriter, LosesNothingAcknowledgedUnderFull) {
  kill_many(sqlite::Durability::full);
}

TEST(KilledWriter, LosesNothingAcknowledgedUnderRelaxed) {
  kill_many(sqlite::Durability::relaxed);
}

}  // namespace
}  // namespace stela::kill_test

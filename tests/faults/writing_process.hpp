// A process that appends until it is killed, and says what it is doing and what it was promised.
#pragma once

#include "faults/evidence.hpp"
#include "support/fault_vfs.hpp"
#include "support/process.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

/// Where a writing process is, as its files see it.
enum class Phase : std::uint32_t {
  opening,
  /// Between two transactions: before the lock, or behind the commit.
  outside,
  /// The write lock is held and nothing of the transaction is in the log yet.
  inside,
  /// From the first frame to the release of the lock.
  committing,
  checkpointing,
  closing,
};

/// Where a writing process can be made to halt, so that it is killed just there.
enum class Place : std::uint8_t {
  nowhere,
  opening,
  /// The write lock was taken.
  at_begin,
  /// Nothing of the transaction is in the log yet, and now something would be.
  before_commit,
  committing,
  /// The write lock was released, and nobody has been told of the commit.
  after_commit,
  checkpointing,
  closing,
};
std::string_view to_string(Place place) noexcept;

/// Which append of which thread of which process.
struct AttemptId {
  int run = 0;
  int thread = 0;
  std::int64_t number = 0;

  friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
};

/// What an attempt appends: a function of its id, so that both sides know it.
struct Attempt {
  enum class Kind { append, with_id, with_rows };
  Kind kind = Kind::append;
  std::vector<PlainAppend> appends;
  std::string append_id;

  static Attempt of(std::uint64_t seed, const AttemptId& id);
  /// In the order in which they get their sequences.
  std::vector<Entry> entries() const;
};

/// What a writing process shares with its parent.
struct WritingState {
  static constexpr int threads = 4;
  std::atomic<Phase> phase{Phase::opening};
  std::atomic<bool> stop{false};
  /// It halts at the n-th call to its files in that place, and says so.
  std::atomic<Place> halt_at{Place::nowhere};
  std::atomic<int> halt_at_call{1};
  std::atomic<bool> halted{false};
  /// The attempt that each thread has begun last; numbers count from 1.
  std::array<std::atomic<std::int64_t>, threads> begun{};
};

struct WritingOptions {
  std::string path;
  sqlite::Durability durability = sqlite::Durability::full;
  int checkpoint_pages = 4000;
  std::uint64_t seed = 0;
  int run = 0;
  /// Sees every call to the files, too.
  FileWatcher* watcher = nullptr;
};

/// In the child: opens the database and appends from several threads until `state.stop`. Each
/// append is reported through the pipe when it has returned.
void write_until_stopped(const WritingOptions& options, WritingState& state, const Pipe& promises);

/// The first sequence of attempts; 0 where it isn't known.
using Attempts = std::map<AttemptId, std::int64_t>;

/// What a process reported.
Attempts parse_promises(int run, const std::string& text);

/// Finds the attempts in what stands from an event on. Each must be whole, in one piece, and there
/// once; else the answer says what is wrong.
std::string find_attempts(std::uint64_t seed, const std::vector<Entry>& entries, std::size_t from,
                          Attempts& found);
/// What was promised and isn't there, in words; or empty.
std::string missing_promise(const Attempts& promised, const Attempts& found);

/// Moves the phase along with what is done to the files.
class PhaseWatcher final : public FileWatcher {
 public:
  explicit PhaseWatcher(WritingState& state, FileWatcher* next = nullptr)
      : state_{state}, next_{next} {}

  /// Until then the phase is somebody else's.
  void begin() noexcept;
  void end(Phase phase) noexcept;

  Verdict before(const FileCall& call) noexcept override;
  void after(const FileCall& call, int code) noexcept override;

 private:
  void move_to(Phase phase) noexcept;
  /// Doesn't return if this is where the process is to halt.
  void pass(Place place) const noexcept;
  void halt() const noexcept;

  WritingState& state_;
  FileWatcher* next_;
  std::atomic<bool> active_{false};
  std::atomic<bool> checkpointing_{false};
};

}  // namespace stela::test

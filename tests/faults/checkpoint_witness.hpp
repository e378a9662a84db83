// Proof that no checkpoint runs beside a write, in whichever process either is.
#pragma once

#include "support/fault_vfs.hpp"

#include <atomic>
#include <cstdint>
#include <string>

namespace stela::test {

/// What the witnesses of all processes have seen; in shared memory.
struct Testimony {
  std::atomic<std::int64_t> writes{0};
  std::atomic<std::int64_t> checkpoints{0};
  /// A checkpoint began while somebody else was writing, or the other way round.
  std::atomic<std::int64_t> overlaps{0};
  /// The log or the database was written to outside of what counts as a write or a checkpoint.
  std::atomic<std::int64_t> unseen{0};
};

/// Watches one process. From the first write to the log under SQLite's lock for that to its release
/// the process holds a lock on one byte of a file of the test's own, for a checkpoint on another
/// byte; whoever takes the one then looks for a holder of the other. A writer counts what began
/// since it took the lock. The kernel releases both with the process. Who takes SQLite's lock and
/// writes nothing only looks at the log's index, as one does who opens the database while another
/// process commits.
///
/// Make it before the database is opened: a process that is killed closes its files in the order of
/// their numbers, and its marks must go before SQLite's locks do.
/// Threads: any number, with one writing connection between them.
class CheckpointWitness final : public FileWatcher {
 public:
  CheckpointWitness(const std::string& marks, Testimony& testimony);
  ~CheckpointWitness() override;
  CheckpointWitness(const CheckpointWitness&) = delete;
  CheckpointWitness& operator=(const CheckpointWitness&) = delete;

  Verdict before(const FileCall& call) noexcept override;
  void after(const FileCall& call, int code) noexcept override;

 private:
  void mark(int byte, bool set) const noexcept;
  bool is_marked_by_others(int byte) const noexcept;

  Testimony& testimony_;
  int file_;
  std::atomic<bool> writing_{false};
  std::atomic<bool> has_written_{false};
  /// When the lock was taken: how many checkpoints had begun, and whether one was running.
  std::atomic<std::int64_t> checkpoints_before_{0};
  std::atomic<bool> is_beside_{false};
  std::atomic<bool> checkpointing_{false};
};

}  // namespace stela::test
